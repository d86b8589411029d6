#include "track/cuda/point_refinement.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "track/stop.hpp"

namespace dic::track::cuda {

static_assert(RefinementOperations<PointRefinement>);

PointRefinement::PointRefinement(TrackerContext& context, const GpuFrame& frame, HaloExchange& halo,
                                 const kernels::PointStart* starts, std::function<void()> before_wait,
                                 std::stop_token stop)
    : context_(context),
      options_(context.options().refine),
      frame_(frame),
      halo_(halo),
      starts_(starts),
      before_wait_(std::move(before_wait)),
      stop_(std::move(stop)),
      lists_(frame.gpu.lists()),
      workspace_(frame.gpu.refinement()),
      points_(frame.reference.points()),
      stream_(frame.gpu.stream()) {}

PointRefinement::~PointRefinement() {
  if (!early_) return;
  try {
    stream_.wait(workspace_.early_refined);  // before the images are released
  } catch (const DeviceError&) {             // the device is lost, which whoever queued the work was told
  }
}

void PointRefinement::start_over() {
  kernels::launch_initial_tasks(points_, starts_, kScoreLadder[0], options_.order, frame_.reference.tracked(),
                                {workspace_.tasks(), lists_.count(PointLists::tasks)}, stream_.handle());
  refine(PointLists::tasks, &workspace_.most_refined);
  accept(PointLists::tasks);
  give_up_noise();
}

void PointRefinement::give_up_noise() {
  kernels::launch_count_certain(points_, frame_.reference.tracked(), workspace_.noise_counts(),
                                stream_.handle());
  kernels::launch_give_up_noise(points_, halo_.sum_noise_counts(),
                                large_group(options_.subset, context_.options().step),
                                frame_.reference.tracked(), workspace_.fresh(), stream_.handle());
}

void PointRefinement::refine_starts(int step) {
  constexpr float any = std::numeric_limits<float>::infinity();
  if (step == 0) early_ = false;  // these results are of other starts; remaining() has waited for them
  select({kScoreLadder[step], step == 0 ? any : kScoreLadder[step - 1]}, workspace_.tasks(),
         PointLists::tasks);
  const kernels::TaskList listed{workspace_.tasks(), lists_.count(PointLists::tasks)};
  if (early_)
    kernels::launch_leave_out_early(listed, points_.own.count(), workspace_.early(), stream_.handle());
  refine(PointLists::tasks);
  if (early_)
    kernels::launch_put_back_early(listed, points_.own.count(), workspace_.results(), workspace_.early(),
                                   stream_.handle());
  accept(PointLists::tasks);
}

/// Refines the starts of all steps of the ladder that are left while the first waves go on, since each step
/// takes as long as its slowest point. The results count when their step comes.
void PointRefinement::refine_early() {
  const bool saturated = frame_.reference.frame().saturated().words || frame_.current.saturated().words;
  if (!workspace_.refines_early || saturated || !frame_.gpu.images().parallel_streams()) return;
  const kernels::EarlyTasks early = workspace_.early();
  kernels::launch_early_tasks(points_, frame_.reference.tracked(), starts_, {kLeastScore, kScoreLadder[0]},
                              options_.order, early, stream_.handle());
  workspace_.early_listed.record(stream_);
  workspace_.early_stream.wait(workspace_.early_listed);
  frame_.gpu.images().refine(frame_.reference.image(), frame_.current, frame_.reference.subsets(),
                             {early.tasks, early.most, early.count}, early.results, workspace_.early_stream,
                             nullptr);
  workspace_.early_refined.record(workspace_.early_stream);
  early_ = true;
}

void PointRefinement::begin_recovery() {
  list_front(front_ = PointLists::first_front);
  if (++recoveries_ == 1) refine_early();
  next_waves_ = recoveries_ == 1 ? workspace_.first_waves : 1;
}

/// Queues some waves before the host waits. It does not know how many of them find points to refine.
int PointRefinement::recover(int most_waves) {
  constexpr int later_waves = 4;
  check_stop(stop_);
  const int waves = std::min(most_waves, std::exchange(next_waves_, later_waves));
  for (int wave = 0; wave < waves; ++wave) {
    refine(front_);
    halo_.wait_until_read();
    accept(front_);
    list_front(front_ = PointLists::tasks);
  }
  return waves;
}

void PointRefinement::count_remaining(int step) {
  select({kLeastScore, kScoreLadder[step]}, nullptr, PointLists::untried);
  readback_ = lists_.start_readback(stream_);
}

RemainingPoints PointRefinement::remaining() {
  if (early_) stream_.wait(workspace_.early_refined);
  before_wait_();
  ++waits_;
  lists_.wait(readback_, "the refinement");
  const RemainingPoints left{.front = halo_.sum(lists_.size(front_)),
                             .untried = halo_.sum(lists_.size(PointLists::untried))};
  note_first_waves(left);
  workspace_.first_waves_sufficed = waits_ == 1 && left.front == 0 && left.untried == 0;
  return left;
}

/// Chooses how the next frame begins, by the first recovery of this one.
void PointRefinement::note_first_waves(const RemainingPoints& left) {
  constexpr int most = 4;
  const std::int64_t first_front = halo_.sum(lists_.size(PointLists::first_front));
  if (recoveries_ > 1) return;
  workspace_.refines_early = left.untried > 0;
  if (first_front == 0)
    workspace_.first_waves = 0;
  else if (left.front > 0)
    workspace_.first_waves = std::min(workspace_.first_waves + 1, most);
  else
    workspace_.first_waves = std::max(workspace_.first_waves, 1);
}

void PointRefinement::drop_islands() {
  halo_.wait_until_read();
  kernels::launch_drop_unconfirmed(points_, frame_.reference.tracked(), workspace_.supports(),
                                   lists_[PointLists::dropped], stream_.handle());
}

void PointRefinement::restore_islands() {
  kernels::launch_restore_dropped(lists_[PointLists::dropped], frame_.reference.tracked(), stream_.handle());
}

std::int64_t PointRefinement::lost() {
  constexpr float any = std::numeric_limits<float>::infinity();
  select({-any, any, true}, nullptr, PointLists::untried);
  lists_.read(stream_, "the refinement");
  workspace_.first_waves_sufficed = false;  // the host waited once more
  return halo_.sum(lists_.size(PointLists::untried));
}

std::int64_t PointRefinement::lost_in_view() {
  core::ThreadTeam& team = context_.gpus().team();
  FeatureSearch& features = context_.features();
  const bool first = frame_.gpu.rank() == 0;
  if (first) features.reserve();
  team.barrier();
  features.fetch_points(frame_);
  team.barrier();
  if (first) features.find_lost(options_, frame_);
  team.barrier();
  return features.in_view();
}

/// Refines the lost points that the last call of lost_in_view() found.
bool PointRefinement::refine_from_features(Stretch stretch) {
  check_stop(stop_);
  FeatureSearch& features = context_.features();
  if (frame_.gpu.rank() == 0) features.find_starts(options_, frame_, stretch);
  context_.gpus().team().barrier();
  if (!features.any_starts()) return false;
  const std::vector<kernels::RefineTask> tasks = features.tasks(points_.own);
  const auto count = static_cast<std::int32_t>(tasks.size());
  if (count > 0) kernels::upload(workspace_.tasks(), tasks.data(), tasks.size() * sizeof(tasks[0]), stream_);
  kernels::upload(lists_.count(PointLists::tasks), &count, sizeof(count), stream_);
  refine(PointLists::tasks);
  accept(PointLists::tasks);
  return true;
}

/// Lists the lost points with a start whose score is in the range. Only counts them if `tasks` is null.
void PointRefinement::select(const kernels::ScoreRange& scores, kernels::RefineTask* tasks,
                             PointLists::Name count) {
  kernels::launch_tasks_from_starts(points_, frame_.reference.tracked(), starts_, scores, options_.order,
                                    {tasks, lists_.count(count)}, stream_.handle());
}

/// Lists the points that the next wave refines.
void PointRefinement::list_front(PointLists::Name count) {
  halo_.read();
  kernels::launch_recovery_tasks(points_, frame_.reference.tracked(), workspace_.fresh(),
                                 {workspace_.tasks(), lists_.count(count)}, stream_.handle());
}

kernels::RefineTasks PointRefinement::listed(PointLists::Name count) const {
  return {workspace_.tasks(), points_.own.count(), lists_.count(count)};
}

/// Refines the listed tasks. most_done: see kernels::launch_refine.
void PointRefinement::refine(PointLists::Name count, kernels::Event* most_done) {
  frame_.gpu.images().refine(frame_.reference.image(), frame_.current, frame_.reference.subsets(),
                             listed(count), workspace_.results(), stream_, most_done);
  frame_.gpu.saturated().run(frame_.gpu.images(), frame_.reference.image(), frame_.current,
                             frame_.reference.subsets(), listed(count), workspace_.results(), stream_);
}

/// Keeps results that are better than before, and marks the points that they measure.
void PointRefinement::accept(PointLists::Name count) {
  kernels::launch_accept_results(points_, listed(count), workspace_.results(), frame_.reference.tracked(),
                                 workspace_.fresh(), stream_.handle());
}

}  // namespace dic::track::cuda
