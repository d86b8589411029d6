#include "track/cuda/start_search.hpp"

#include <utility>

#include "track/steering.hpp"

namespace dic::track::cuda {

using kernels::PointStart;

const PointStart* StartSearch::find(std::int64_t& trackable) {
  const auto& points = reference_.points();
  PointLists& lists = bench_.lists;
  auto* starts = bench_.starts.reserve<PointStart>(points.count);
  kernels::launch_starts_from_last(points, measured_before_ ? reference_.tracked() : nullptr, starts,
                                   lists[PointLists::without], stream_.handle());
  kernels::launch_split(points, nullptr, points.count, radius_, lists[PointLists::whole],
                        lists[PointLists::cut], stream_.handle());
  read_lists();
  trackable = lists.size(PointLists::whole) + lists.size(PointLists::cut);
  const std::int64_t without = lists.size(PointLists::without);
  if (automatic() && many_lost(without, trackable)) start_from_coarse(PointLists::without, starts);
  search_from(starts);
  if (automatic() && without < trackable && many_lost(lists.size(PointLists::lost), trackable))
    find_lost(starts);
  return starts;
}

/// Searches the lists `whole` and `cut` from where `starts` says and writes what was found there. In
/// automatic range, peaks on the border of the searched rectangle are followed, and the list `lost` is known
/// afterwards.
void StartSearch::search_from(PointStart* starts) {
  std::pair whole{PointLists::whole, PointLists::again_whole}, cut{PointLists::cut, PointLists::again_cut};
  const PointLists& lists = bench_.lists;
  for (int step = 0; step <= kAutoSteps; ++step) {
    check_stop(stop_);
    search_list(whole.first, whole.second, false, starts);
    search_list(cut.first, cut.second, true, starts);
    if (!automatic()) return;
    kernels::launch_count_lost(reference_.points(), starts, kRecognized, lists[PointLists::lost],
                               stream_.handle());
    read_lists();
    std::swap(whole.first, whole.second);
    std::swap(cut.first, cut.second);
    if (lists.size(whole.first) + lists.size(cut.first) == 0) return;
  }
}

void StartSearch::search_list(PointLists::Name which, PointLists::Name again, bool cut, PointStart* starts) {
  const std::int64_t n = bench_.lists.size(which);
  const std::int32_t* list = bench_.lists[which].points;
  const int range = automatic() ? kAutoRange : bench_.options.search;
  Station& lead = bench_.lead();
  auto* references = lead.references.reserve<MatrixPosition>(n);
  auto* windows = lead.windows.reserve<MatrixPosition>(n);
  auto* peaks = lead.peaks.reserve<Peak>(n);
  kernels::launch_place_windows(reference_.points(), list, n, radius_, range, starts, references, windows,
                                stream_.handle());
  share_out(sides_, n, [&](const Side& side, const Share& share) {
    Station& station = side.station;
    Peak* found = place_for(station.peaks, peaks, share);
    bench_.variants.insert(station.search.peaks(
        {side.reference.frame().picture, side.current.picture, cut ? side.reference.roi() : ImageView{}, cut},
        {brought(side, station.references, references, share), brought(side, station.windows, windows, share),
         share.count, 2 * radius_ + 1, range},
        found, station.stream));
    hand_back(side, found, peaks, share);
  });
  kernels::launch_take_peaks(list, n, peaks, range, automatic(), starts, bench_.lists[again],
                             stream_.handle());
}

void StartSearch::start_from_coarse(PointLists::Name which, PointStart* starts) {
  check_stop(stop_);
  CoarseField field = bench_.coarse.run(reference_.coarse(stream_), sides_.front().current.picture, stream_);
  bench_.variants.insert(bench_.coarse.kernels().begin(), bench_.coarse.kernels().end());
  if (!field.valid()) field.u.assign(field.u.size(), 0), field.v.assign(field.v.size(), 0);
  const std::size_t nodes = field.u.size();
  auto* u = bench_.coarse_field.reserve<float>(2 * nodes);
  kernels::upload(u, field.u.data(), nodes * sizeof(float), stream_);
  kernels::upload(u + nodes, field.v.data(), nodes * sizeof(float), stream_);
  const auto list = bench_.lists[which];
  kernels::launch_starts_from_field(reference_.points(), list.points, bench_.lists.size(which), field, u,
                                    u + nodes, starts, stream_.handle());
}

/// The motion since the last frame may have been too large to follow.
void StartSearch::find_lost(PointStart* starts) {
  const auto& points = reference_.points();
  const PointLists& lists = bench_.lists;
  const auto stream = stream_.handle();
  auto* retry = bench_.retry.reserve<PointStart>(points.count);
  kernels::launch_starts_from_last(points, nullptr, retry, lists[PointLists::without], stream);
  start_from_coarse(PointLists::lost, retry);
  kernels::launch_split(points, lists[PointLists::lost].points, lists.size(PointLists::lost), radius_,
                        lists[PointLists::whole], lists[PointLists::cut], stream);
  read_lists();
  search_from(retry);
  kernels::launch_keep_better(points.count, retry, starts, stream);
}

}  // namespace dic::track::cuda
