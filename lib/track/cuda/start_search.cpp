#include "track/cuda/start_search.hpp"

#include <algorithm>
#include <array>
#include <dic/kernels/peer.hpp>

namespace dic::track::cuda {

using kernels::PointStart;

static_assert(StartSearchOperations<StartSearch>);

StartSearch::StartSearch(TrackerContext& context, const GpuFrame& frame, std::int64_t number,
                         const kernels::TrackedPoint* last, std::stop_token stop)
    : context_(context),
      frame_(frame),
      lists_(frame.gpu.lists()),
      workspace_(frame.gpu.search()),
      points_(frame.reference.points()),
      stream_(frame.gpu.stream()),
      number_(number),
      last_(last),
      stop_(std::move(stop)),
      range_(context.options().search),
      subset_(context.options().refine.subset),
      radius_(subset_ / 2),
      follows_(automatic() &&
               frame.gpu.images().follows(workspace_.whole, frame.current.image, subset_, kAutoRange)),
      starts_(workspace_.starts[number % 2].reserve<PointStart>(points_.count)) {}

bool StartSearch::waits_for_nothing() const {
  return last_ && follows_ && workspace_.lists_hold(frame_.reference) &&
         lists_.size(PointLists::clipped) == 0;
}

void StartSearch::resume(const QueuedSearch& search) {
  own_trackable_ = search.trackable;
  readback_ = search.readback;
}

void StartSearch::predict_from_last() {
  kernels::launch_starts_from_last(points_, last_, starts_, lists_[PointLists::unpredicted],
                                   lists_.count(PointLists::excused), stream_.handle());
  if (own_trackable_) return;
  list_own_points();
  own_trackable_ = lists_.size(PointLists::whole) + lists_.size(PointLists::clipped);
}

void StartSearch::follow_common_motion() {
  const kernels::AskedPoints asked = workspace_.asked(number_);
  kernels::launch_ask_points(points_, last_, starts_, asked, stream_.handle());
  search_asked(asked);
  kernels::launch_sample_motion(points_, asked, kRecognized, starts_, stream_.handle());
  kernels::launch_follow_motion(points_, samples_of_all(asked), context_.gpus().size(), kAutoRange,
                                workspace_.motion.reserve<LinearMotion>(1), starts_, stream_.handle());
}

/// Searches the points that tell the common motion around their starts.
void StartSearch::search_asked(const kernels::AskedPoints& asked) {
  if (follows_) {
    follow(asked.list, kMotionSamples, starts_);
    return;
  }
  std::array<std::int32_t, kMotionSamples> points;
  kernels::download(points.data(), asked.list, sizeof(points), stream_);
  stream_.synchronize("the search");
  const auto asked_end = std::ranges::remove(points, -1).begin();
  const auto n = std::unique(points.begin(), asked_end) - points.begin();  // few points are asked repeatedly
  const std::int32_t* list = lists_[PointLists::whole_spare].points;
  kernels::upload(lists_[PointLists::whole_spare].points, points.data(), n * sizeof(points[0]), stream_);
  kernels::launch_split_subsets(points_, list, n, radius_, lists_[PointLists::whole_again],
                                lists_[PointLists::clipped_again], stream_.handle());
  lists_.read(stream_, "the search");
  let_side_stream_follow();
  search_steps({PointLists::whole_again, PointLists::whole_spare, PointLists::whole_again, false},
               {PointLists::clipped_again, PointLists::clipped_spare, PointLists::clipped_again, true},
               starts_);
}

/// The samples of all GPUs. All of them must call it.
const MotionSample* StartSearch::samples_of_all(const kernels::AskedPoints& asked) {
  GpuGroup& gpus = context_.gpus();
  if (gpus.size() == 1) return asked.samples;
  workspace_.sampled.record(stream_);
  gpus.team().barrier();
  MotionSample* all = workspace_.gathered_samples(gpus.size());
  for (int rank = 0; rank < gpus.size(); ++rank) {
    SearchWorkspace& other = gpus[rank].search();
    stream_.wait(other.sampled);
    kernels::copy_between(all + rank * kMotionSamples, other.asked(number_).samples,
                          kMotionSamples * sizeof(*all), stream_.handle());
  }
  return all;
}

/// Fills the lists `whole` and `clipped`, unless an earlier frame has filled them with the same points.
void StartSearch::list_own_points() {
  if (workspace_.lists_hold(frame_.reference)) return;
  split(nullptr, points_.count);
  workspace_.set_listed(frame_.reference);
}

/// Fills these lists from another list, or from all own points if `list` is null.
void StartSearch::split(const std::int32_t* list, std::int64_t n) {
  kernels::launch_split_subsets(points_, list, n, follows_ ? 0 : radius_, lists_[PointLists::whole],
                                lists_[PointLists::clipped], stream_.handle());
  lists_.read(stream_, "the search");
}

std::int64_t StartSearch::trackable() {
  if (trackable_) return *trackable_;
  std::int64_t own = *own_trackable_;
  if (points_.efforts) {
    fetch_counts();
    own -= lists_.size(PointLists::left_to_neighbours);
  }
  trackable_ = context_.gpus().team().sum(own);
  return *trackable_;
}

/// Waits for the lengths of lists after the last search, or without one for those that are known now.
void StartSearch::fetch_counts() {
  if (readback_)
    lists_.wait(*readback_, "the search");
  else
    lists_.read(stream_, "the search");
}

std::int64_t StartSearch::unpredicted() {
  if (unpredicted_) return *unpredicted_;
  fetch_counts();
  unpredicted_ = missed(PointLists::unpredicted, PointLists::excused_unpredicted);
  return *unpredicted_;
}

std::int64_t StartSearch::lost() {
  lists_.wait(*readback_, "the search");
  return missed(PointLists::lost, PointLists::excused_lost);
}

/// Number of the points of a list, without those that are excused.
std::int64_t StartSearch::missed(PointLists::Name missing, PointLists::Name excused) {
  if (!excused_) excused_ = total(PointLists::excused);
  return track::missed(total(missing), total(excused), *excused_, trackable());
}

void StartSearch::search_all() { search(starts_); }

/// Searches the lists `whole` and `clipped` around the displacements in `starts`, and writes what was found
/// there. In automatic range, a peak on the border of the searched rectangle is followed, and the list `lost`
/// is filled at the end. Clipped subsets are few, but take several launches, which go first if both lists
/// wait for the GPU.
void StartSearch::search(PointStart* starts) {
  let_side_stream_follow();
  if (follows_) {
    follow(lists_[PointLists::whole].points, lists_.size(PointLists::whole), starts);
    frame_.gpu.add_variant("cuda-few-shifts");
  }
  search_steps({PointLists::whole, PointLists::whole_again, PointLists::whole_spare, false},
               {PointLists::clipped, PointLists::clipped_again, PointLists::clipped_spare, true}, starts);
  if (automatic()) list_lost(starts);
}

/// Lets the stream of clipped subsets wait for the predictions.
void StartSearch::let_side_stream_follow() {
  workspace_.predicted.record(stream_);
  stream_of(true).wait(workspace_.predicted);
}

/// Searches two lists step by step, of which the first was searched already where points are followed.
void StartSearch::search_steps(Step whole, Step clipped, PointStart* starts) {
  const kernels::Stream& side = stream_of(true);
  const auto left = [&] { return lists_.size(clipped.from) + (follows_ ? 0 : lists_.size(whole.from)); };
  for (int step = 0; step <= kAutoSteps && left() > 0; ++step) {
    check_stop(stop_);
    if (!follows_) search_list(whole, starts);
    search_list(clipped, starts);
    workspace_.clipped_done.record(side);
    if (!automatic()) break;
    if (!follows_) stream_.wait(workspace_.clipped_done);
    lists_.read(follows_ ? side : stream_, "the search");
    whole.advance();
    clipped.advance();
  }
  stream_.wait(workspace_.clipped_done);
}

void StartSearch::leave_out_measured() {
  measured_ = frame_.reference.tracked();
  list_lost(starts_);
}

void StartSearch::list_lost(const PointStart* starts) {
  kernels::launch_list_lost_starts(points_, last_, measured_, starts, kRecognized, lists_[PointLists::lost],
                                   lists_.count(PointLists::excused_lost), stream_.handle());
  readback_ = lists_.start_readback(stream_);
}

/// Searches the points of a list and follows their peaks, in one launch.
void StartSearch::follow(const std::int32_t* list, std::int64_t count, PointStart* starts) {
  workspace_.whole.follow({frame_.reference.frame().image, frame_.current.image, {}}, points_, count,
                          2 * radius_ + 1,
                          {.list = list,
                           .range = kAutoRange,
                           .steps = kAutoSteps,
                           .starts = starts,
                           .windows = workspace_.windows.reserve<PatchPosition>(points_.count),
                           .peaks = workspace_.peaks.reserve<Peak>(points_.count)},
                          stream_);
}

void StartSearch::search_list(const Step& step, PointStart* starts) {
  // Both lists share the memory: whole subsets are at its beginning, clipped ones at its end.
  const std::int64_t n = lists_.size(step.from), first = step.clipped ? points_.count - n : 0;
  const std::int32_t* list = lists_[step.from].points;
  const kernels::Stream& stream = stream_of(step.clipped);
  const kernels::SearchWindows windows{
      .references = workspace_.references.reserve<PatchPosition>(points_.count) + first,
      .windows = workspace_.windows.reserve<PatchPosition>(points_.count) + first,
      .count = n,
      .size = 2 * radius_ + 1,
      .range = range_.value_or(kAutoRange)};
  auto* peaks = workspace_.peaks.reserve<Peak>(points_.count) + first;
  kernels::launch_place_windows(points_, list, starts, windows, stream.handle());
  SubsetSearch& search = on_side_stream(step.clipped) ? workspace_.clipped : workspace_.whole;
  if (n > 0)
    frame_.gpu.add_variant(frame_.gpu.images().find_peaks(search, frame_.reference.image(), frame_.current,
                                                          windows, step.clipped, peaks, stream));
  kernels::launch_take_peaks(list, windows, peaks, automatic(), starts, lists_[step.again], stream.handle());
}

void StartSearch::predict_from_pyramid(PointLists::Name which, PointStart* starts) {
  check_stop(stop_);
  const CoarseField& field = context_.coarse().field();
  if (!has_coarse_field_) fetch_coarse_field();
  const std::size_t nodes = field.u.size();
  const auto* u = static_cast<const float*>(workspace_.coarse_field.data());
  kernels::launch_starts_from_field(points_, {lists_[which].points, lists_.size(which)}, field, u, u + nodes,
                                    starts, stream_.handle());
}

/// Finds the field of the image pyramid, once per frame, and copies it to this GPU.
void StartSearch::fetch_coarse_field() {
  if (frame_.gpu.rank() == 0) run_coarse_search();
  context_.gpus().team().barrier();
  const CoarseField& field = context_.coarse().field();
  const std::size_t nodes = field.u.size();
  auto* u = workspace_.coarse_field.reserve<float>(2 * nodes);
  kernels::upload(u, field.u.data(), nodes * sizeof(float), stream_);
  kernels::upload(u + nodes, field.v.data(), nodes * sizeof(float), stream_);
  has_coarse_field_ = true;
}

void StartSearch::run_coarse_search() {
  SharedCoarseSearch& coarse = context_.coarse();
  coarse.run(frame_.reference, frame_.gpu.images().pyramid_source(frame_.current, stream_), stream_);
  for (const std::string& variant : coarse.kernels()) frame_.gpu.add_variant(variant);
}

void StartSearch::search_again(bool all) {
  const kernels::PointRange& own = points_.own;
  if (measured_) list_lost(starts_);  // again, since the search of the next frame has the same lists
  auto* others = workspace_.other_starts.reserve<PointStart>(points_.count);
  kernels::launch_starts_from_last(points_, nullptr, others, lists_[PointLists::unpredicted],
                                   lists_.count(PointLists::excused), stream_.handle());
  lists_.read(stream_, "the search");
  const PointLists::Name which = all ? PointLists::unpredicted : PointLists::lost;
  predict_from_pyramid(which, others);
  workspace_.forget_listed();
  split(lists_[which].points, lists_.size(which));
  search(others);
  kernels::launch_keep_better_starts(own.count(), others + own.first, starts_ + own.first, stream_.handle());
  list_lost(starts_);
}

}  // namespace dic::track::cuda
