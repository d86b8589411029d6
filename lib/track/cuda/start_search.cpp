#include "track/cuda/start_search.hpp"

#include <utility>

#include "track/steering.hpp"

namespace dic::track::cuda {

using kernels::PointStart;

const PointStart* StartSearch::find(std::int64_t& trackable) {
  PointLists& lists = station_.lists;
  auto* starts = station_.starts.reserve<PointStart>(points_.count);
  kernels::launch_starts_from_last(points_, measured_before_ ? side_.reference.tracked() : nullptr, starts,
                                   lists[PointLists::without], stream_.handle());
  kernels::launch_split(points_, nullptr, points_.count, radius_, lists[PointLists::whole],
                        lists[PointLists::cut], stream_.handle());
  read_lists();
  trackable = total(PointLists::whole) + total(PointLists::cut);
  const std::int64_t without = total(PointLists::without);
  if (automatic() && many_lost(without, trackable)) start_from_coarse(PointLists::without, starts);
  search_from(starts);
  if (automatic() && without < trackable) of_trackable_ = trackable;
  return starts;
}

bool StartSearch::lost_many() {
  return of_trackable_ > 0 && many_lost(total(PointLists::lost), of_trackable_);
}

/// Searches the lists `whole` and `cut` from where `starts` says and writes what was found there. In
/// automatic range, peaks on the border of the searched rectangle are followed, and the list `lost` is known
/// afterwards.
void StartSearch::search_from(PointStart* starts) {
  std::pair whole{PointLists::whole, PointLists::again_whole}, cut{PointLists::cut, PointLists::again_cut};
  const PointLists& lists = station_.lists;
  for (int step = 0; step <= kAutoSteps; ++step) {
    check_stop(stop_);
    station_.work.start(stream_);
    search_list(whole.first, whole.second, false, starts);
    search_list(cut.first, cut.second, true, starts);
    station_.work.stop(stream_);
    if (!automatic()) return;
    kernels::launch_count_lost(points_, starts, kRecognized, lists[PointLists::lost], stream_.handle());
    read_lists();
    std::swap(whole.first, whole.second);
    std::swap(cut.first, cut.second);
    if (lists.size(whole.first) + lists.size(cut.first) == 0) return;  // the others' peaks are theirs
  }
}

void StartSearch::search_list(PointLists::Name which, PointLists::Name again, bool cut, PointStart* starts) {
  const std::int64_t n = station_.lists.size(which);
  const std::int32_t* list = station_.lists[which].points;
  const int range = automatic() ? kAutoRange : bench_.options.search;
  auto* references = station_.references.reserve<MatrixPosition>(points_.count);
  auto* windows = station_.windows.reserve<MatrixPosition>(points_.count);
  auto* peaks = station_.peaks.reserve<Peak>(points_.count);
  kernels::launch_place_windows(points_, list, n, radius_, range, starts, references, windows,
                                stream_.handle());
  if (n > 0)
    station_.variants.insert(find_peaks({references, windows, n, 2 * radius_ + 1, range}, cut, peaks));
  kernels::launch_take_peaks(list, n, peaks, range, automatic(), starts, station_.lists[again],
                             stream_.handle());
}

/// Returns the variant that ran.
std::string StartSearch::find_peaks(const SubsetWindows& windows, bool cut, Peak* peaks) {
  const ReferenceSide& reference = side_.reference;
  if (station_.bands)
    return station_.bands->search(station_.search, reference.banded(), side_.current, windows, cut, peaks,
                                  stream_);
  return station_.search.peaks({reference.frame().picture, side_.current.picture, reference.roi(), cut},
                               windows, peaks, stream_);
}

void StartSearch::start_from_coarse(PointLists::Name which, PointStart* starts) {
  check_stop(stop_);
  if (station_.rank == 0) run_coarse_search();
  bench_.crew.meet();
  const CoarseField& field = bench_.coarse_found;
  const std::size_t nodes = field.u.size();
  auto* u = station_.coarse_field.reserve<float>(2 * nodes);
  kernels::upload(u, field.u.data(), nodes * sizeof(float), stream_);
  kernels::upload(u + nodes, field.v.data(), nodes * sizeof(float), stream_);
  kernels::launch_starts_from_field(points_, station_.lists[which].points, station_.lists.size(which), field,
                                    u, u + nodes, starts, stream_.handle());
}

/// For all ranks, which read it before they meet again.
void StartSearch::run_coarse_search() {
  CoarseField& field = bench_.coarse_found;
  const PyramidSource current = pyramid_source(station_.picture_bands(), side_.current, stream_);
  field = bench_.coarse.run(side_.reference.coarse(stream_), current, stream_);
  station_.variants.insert(bench_.coarse.kernels().begin(), bench_.coarse.kernels().end());
  if (!field.valid()) field.u.assign(field.u.size(), 0), field.v.assign(field.v.size(), 0);
}

void StartSearch::find_lost() {
  const PointLists& lists = station_.lists;
  auto* starts = static_cast<PointStart*>(station_.starts.data());
  const kernels::PointRange& own = points_.own;
  const auto stream = stream_.handle();
  auto* retry = station_.retry.reserve<PointStart>(points_.count);
  kernels::launch_starts_from_last(points_, nullptr, retry, lists[PointLists::without], stream);
  read_lists();
  // Where most are lost, the others may have been recognized by chance.
  const bool all = most_lost(total(PointLists::lost), of_trackable_);
  const PointLists::Name again = all ? PointLists::without : PointLists::lost;
  start_from_coarse(again, retry);
  kernels::launch_split(points_, lists[again].points, lists.size(again), radius_, lists[PointLists::whole],
                        lists[PointLists::cut], stream);
  read_lists();
  search_from(retry);
  kernels::launch_keep_better(own.count(), retry + own.first, starts + own.first, stream);
}

}  // namespace dic::track::cuda
