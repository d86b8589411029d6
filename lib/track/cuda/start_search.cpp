#include "track/cuda/start_search.hpp"

namespace dic::track::cuda {

using kernels::PointStart;

bool StartSearch::waits_for_nothing() const {
  return last_ && divided() && follows_ && station_.lists.size(PointLists::cut) == 0;
}

EarlySearch StartSearch::find(int turn) {
  starts_ = station_.starts[turn].reserve<PointStart>(points_.count);
  start_from_last();
  divide_own();
  if (!last_) {
    read_lists();
    if (automatic() && total(PointLists::without) > 0) start_from_coarse(PointLists::without, starts_);
  }
  trackable_ = station_.lists.size(PointLists::whole) + station_.lists.size(PointLists::cut);
  search_from(starts_);
  return {starts_, trackable_, telling_};
}

void StartSearch::go_on(const EarlySearch& begun) {
  starts_ = begun.starts;
  trackable_ = begun.trackable;
  telling_ = begun.telling;
}

void StartSearch::start_from_last() {
  kernels::launch_starts_from_last(points_, last_, starts_, station_.lists[PointLists::without],
                                   stream_.handle());
}

bool StartSearch::divided() const {
  return station_.divided.lock().get() == &side_.reference && station_.range_divided == points_.own;
}

/// Fills the lists `whole` and `cut`, unless they are those of a frame before.
void StartSearch::divide_own() {
  if (divided()) return;
  split(nullptr, points_.count);
  station_.divided = side_.reference.weak_from_this();
  station_.range_divided = points_.own;
}

/// Fills these lists from another; null: from all own points.
void StartSearch::split(const std::int32_t* list, std::int64_t n) {
  const PointLists& lists = station_.lists;
  kernels::launch_split_subsets(points_, list, n, follows_ ? 0 : radius_, lists[PointLists::whole],
                                lists[PointLists::cut], stream_.handle());
  read_lists();
}

bool StartSearch::without_many() {
  if (automatic()) station_.lists.wait(telling_, "the search");
  trackable_ = bench_.team.sum(trackable_);
  without_ = total(PointLists::without);
  return automatic() && last_ && many_lost(without_, trackable_);
}

void StartSearch::find_those_without() {
  start_from_last();
  start_from_coarse(PointLists::without, starts_);
  search_from(starts_);
}

bool StartSearch::lost_many() {
  if (automatic()) station_.lists.wait(telling_, "the search");
  return automatic() && without_ < trackable_ && many_lost(total(PointLists::lost), trackable_);
}

/// Searches the lists `whole` and `cut` from where `starts` says, side by side, and writes what was found
/// there. In automatic range, peaks on the border of the searched rectangle are followed, and the list `lost`
/// is told afterwards. Subsets that are cut are few, but take several launches: those go first wherever they
/// meet. Bands are one after the other in the same memory.
void StartSearch::search_from(PointStart* starts) {
  Step whole{PointLists::whole, PointLists::again_whole, PointLists::once_more_whole, false};
  Step cut{PointLists::cut, PointLists::again_cut, PointLists::once_more_cut, true};
  PointLists& lists = station_.lists;
  const kernels::Stream& beside = station_.bands ? stream_ : station_.beside;
  station_.placed.record(stream_);
  beside.wait(station_.placed);
  if (follows_) follow_whole(starts);
  const auto left = [&] { return lists.size(cut.from) + (follows_ ? 0 : lists.size(whole.from)); };
  for (int step = 0; step <= kAutoSteps && left() > 0; ++step) {
    check_stop(stop_);
    if (!follows_) search_list(whole, starts, stream_);
    search_list(cut, starts, beside);
    station_.searched.record(beside);
    if (!automatic()) break;
    if (!follows_) stream_.wait(station_.searched);
    lists.read(follows_ ? beside : stream_, "the search");
    whole.advance();
    cut.advance();
  }
  stream_.wait(station_.searched);
  if (!automatic()) return;
  kernels::launch_list_lost_starts(points_, starts, kRecognized, lists[PointLists::lost], stream_.handle());
  telling_ = lists.tell(stream_);
}

/// Searches the list `whole` to its end.
void StartSearch::follow_whole(PointStart* starts) {
  const PointLists& lists = station_.lists;
  station_.search.follow({side_.reference.frame().image, side_.current.image, {}}, points_,
                         lists.size(PointLists::whole), 2 * radius_ + 1,
                         {.list = lists[PointLists::whole].points,
                          .range = kAutoRange,
                          .steps = kAutoSteps,
                          .starts = starts,
                          .windows = station_.windows.reserve<PatchPosition>(points_.count),
                          .peaks = station_.peaks.reserve<Peak>(points_.count)},
                         stream_);
  station_.variants.insert("cuda-few-shifts");
}

void StartSearch::search_list(const Step& step, PointStart* starts, const kernels::Stream& stream) {
  PointLists& lists = station_.lists;
  const std::int64_t n = lists.size(step.from), first = step.cut ? points_.count - n : 0;
  const std::int32_t* list = lists[step.from].points;
  const int range = bench_.options.search.value_or(kAutoRange);
  auto* references = station_.references.reserve<PatchPosition>(points_.count) + first;
  auto* windows = station_.windows.reserve<PatchPosition>(points_.count) + first;
  auto* peaks = station_.peaks.reserve<Peak>(points_.count) + first;
  kernels::launch_place_windows(points_, list, n, radius_, range, starts, references, windows,
                                stream.handle());
  if (n > 0)
    station_.variants.insert(
        find_peaks({references, windows, n, 2 * radius_ + 1, range}, step.cut, peaks, stream));
  kernels::launch_take_peaks(list, n, references, windows, peaks, automatic(), starts, lists[step.again],
                             stream.handle());
}

/// Returns the variant that ran.
std::string StartSearch::find_peaks(const SubsetWindows& windows, bool cut, Peak* peaks,
                                    const kernels::Stream& stream) {
  const ReferenceSide& reference = side_.reference;
  if (station_.bands)
    return station_.bands->search(station_.search, reference.banded(), side_.current, windows, cut, peaks,
                                  stream);
  SubsetSearch& search = cut ? station_.search_of_cut : station_.search;
  return search.peaks({reference.frame().image, side_.current.image, reference.roi(), cut}, windows, peaks,
                      stream);
}

void StartSearch::start_from_coarse(PointLists::Name which, PointStart* starts) {
  check_stop(stop_);
  if (station_.rank == 0) run_coarse_search();
  bench_.team.barrier();
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
  const PyramidSource current = pyramid_source(station_.image_bands(), side_.current, stream_);
  field = bench_.coarse.run(side_.reference.coarse(stream_), current, stream_);
  station_.variants.insert(bench_.coarse.kernels().begin(), bench_.coarse.kernels().end());
  if (!field.valid()) field.u.assign(field.u.size(), 0), field.v.assign(field.v.size(), 0);
}

void StartSearch::find_lost() {
  const PointLists& lists = station_.lists;
  const kernels::PointRange& own = points_.own;
  const auto stream = stream_.handle();
  auto* retry = station_.retry.reserve<PointStart>(points_.count);
  kernels::launch_starts_from_last(points_, nullptr, retry, lists[PointLists::without], stream);
  read_lists();
  // Where most are lost, the others may have been recognized by chance.
  const bool all = most_lost(total(PointLists::lost), trackable_);
  const PointLists::Name again = all ? PointLists::without : PointLists::lost;
  start_from_coarse(again, retry);
  station_.divided.reset();
  split(lists[again].points, lists.size(again));
  search_from(retry);
  kernels::launch_keep_better_starts(own.count(), retry + own.first, starts_ + own.first, stream);
}

}  // namespace dic::track::cuda
