#include <algorithm>

#include "points/points.cuh"

namespace dic::kernels {
namespace {

__device__ RelativeShape truncated(RelativeShape shape, int order) {
#pragma unroll
  for (int term = 1; term < 6; ++term)
    if ((term < 3 ? 1 : 2) > order) shape.u[term] = shape.v[term] = 0;
  return shape;
}

__device__ RefineTask task_from(std::int32_t i, const PointStart& start, int order) {
  return {i, start.u, start.v, truncated(start.shape, order)};
}

/// Appends the tasks of lanes that have one, or only counts them if the list has no memory for tasks. All
/// lanes of the warp must call it.
__device__ void append_task(bool has_one, const RefineTask& task, const TaskList& list) {
  std::int32_t place = -1;
  if (has_one) place = count_up(list.count);
  if (list.tasks) store_together(list.tasks, place, task);
}

__global__ void __launch_bounds__(point_threads)
    initial_tasks(const __grid_constant__ GridPoints points, const PointStart* starts, float least, int order,
                  TrackedPoint* tracked, const __grid_constant__ TaskList list) {
  for_each_warp_of_points(points.own, [&](std::int32_t i, bool exists) {
    TrackedPoint point;
    RefineTask task;
    task.point = no_point;
    if (exists) {
      const Status status = points.subsets[i].status;
      const float score = starts[i].score;
      point.result.status = status == Status::ok ? Status::low_correlation : status;
      point.result.zncc = fmaxf(0, score);
      if (status == Status::ok && score >= least) task = task_from(i, starts[i], order);
    }
    store_together(tracked, exists ? i : -1, point);
    store_together(list.tasks, exists ? static_cast<std::int32_t>(i - points.own.first) : -1, task);
  });
  if (blockIdx.x == 0 && threadIdx.x == 0) *list.count = static_cast<std::int32_t>(points.own.count());
}

__device__ bool is_lost(const FramePoints& points, std::int32_t i) {
  return points.status(i) != Status::ok && points.status(i) != Status::flat && points.trackable(i);
}

__global__ void __launch_bounds__(point_threads)
    tasks_from_starts(const __grid_constant__ FramePoints points, TrackedPoint* tracked,
                      const PointStart* starts, const __grid_constant__ ScoreRange scores, int order,
                      const __grid_constant__ TaskList list) {
  for_each_warp_of_points(points.grid.own, [&](std::int32_t i, bool exists) {
    const bool lost = exists && is_lost(points, i);
    const bool has_left = lost && !scores.sought_only && track::has_surely_left(points, i);
    // Other threads may read this status meanwhile: with either value the point is not measured.
    if (has_left) tracked[i].result.status = Status::out_of_image;
    const float score = lost ? starts[i].score : -1;
    const bool selected = lost && !has_left && score >= scores.least && score < scores.below &&
                          (!scores.sought_only || points.is_missed(i));
    RefineTask task;
    if (selected) task = task_from(i, starts[i], order);
    append_task(selected, task, list);
  });
}

__global__ void __launch_bounds__(point_threads)
    early_tasks(const __grid_constant__ FramePoints points, const PointStart* starts,
                const __grid_constant__ ScoreRange scores, int order,
                const __grid_constant__ EarlyTasks early) {
  for_each_warp_of_points(points.grid.own, [&](std::int32_t i, bool exists) {
    const float score = exists && is_lost(points, i) ? starts[i].score : -1;
    std::int32_t place = -1;
    if (score >= scores.least && score < scores.below && !track::has_surely_left(points, i))
      place = count_up(early.count);
    if (place >= early.most) place = -1;
    RefineTask task;
    if (place >= 0) task = task_from(i, starts[i], order);
    if (exists) early.of_point[i] = place;
    store_together(early.tasks, place, task);
  });
}

__global__ void limit_count(std::int32_t* count, std::int32_t most) { *count = min(*count, most); }

__global__ void __launch_bounds__(point_threads)
    leave_out_early(const __grid_constant__ TaskList list, const __grid_constant__ EarlyTasks early) {
  for_each_point(*list.count, [&](std::int32_t k) {
    RefineTask& task = list.tasks[k];
    const std::int32_t number = early.of_point[task.point];
    if (number >= 0) task.point = no_point, task.u = number;
  });
}

__global__ void __launch_bounds__(point_threads)
    put_back_early(const __grid_constant__ TaskList list, RefineResult* results,
                   const __grid_constant__ EarlyTasks early) {
  for_each_point(*list.count, [&](std::int32_t k) {
    RefineTask& task = list.tasks[k];
    if (task.point != no_point) return;
    const std::int32_t number = task.u;
    task = early.tasks[number];
    results[k] = early.results[number];
  });
}

__global__ void __launch_bounds__(point_threads)
    accept_results(const __grid_constant__ RefineTasks tasks, const RefineResult* results,
                   TrackedPoint* tracked, std::uint8_t* fresh) {
  for_each_warp_of_points(PointRange{0, tasks.count()}, [&](std::int32_t k, bool exists) {
    const RefineTask& task = tasks.first[k];
    const std::int32_t i = exists ? task.point : no_point;
    const bool taken = i != no_point && track::replaces(results[k], tracked[i].result);
    TrackedPoint point;
    if (taken) point = {task.u, task.v, results[k]};
    store_together(tracked, taken ? i : -1, point);
    if (taken && point.result.status == Status::ok) fresh[i] = 1;
  });
}

/// Halos from up to two GPUs, mostly those that measure the rows above and below.
struct HaloSources {
  static constexpr int most = 2;
  HaloSource from[most];
};

/// Reads word by word along the warps, the fastest way to read from another GPU. blockIdx.y is the number of
/// the source.
__global__ void __launch_bounds__(point_threads)
    read_halo(const __grid_constant__ HaloSources all, TrackedPoint* tracked, std::uint8_t* fresh) {
  const HaloSource& other = all.from[blockIdx.y];
  const std::int64_t first = other.points.first, n = other.points.count();
  constexpr std::int64_t words = sizeof(TrackedPoint) / sizeof(unsigned);
  const auto* from = reinterpret_cast<const unsigned*>(other.tracked + first);
  auto* to = reinterpret_cast<unsigned*>(tracked + first);
  for_each_task(n * words, point_threads, threadIdx.x, [&](std::int64_t k) { to[k] = from[k]; });
  for_each_point(other.points, [&](std::int32_t i) { fresh[i] = other.fresh[i]; });
}

__global__ void __launch_bounds__(point_threads)
    recovery_tasks(const __grid_constant__ FramePoints points, const std::uint8_t* fresh,
                   const __grid_constant__ TaskList list) {
  for_each_warp_of_points(points.grid.own, [&](std::int32_t i, bool exists) {
    const bool is_listed = exists && track::needs_recovery(points, fresh, i);
    RefineTask task;
    if (is_listed) {
      const SplitShape start = split(track::predicted_shape(points, track::best_neighbour(points, i), i));
      task = {i, start.u, start.v, start.rest};
    }
    append_task(is_listed, task, list);
  });
}

}  // namespace

void launch_initial_tasks(const GridPoints& points, const PointStart* starts, float least, int order,
                          TrackedPoint* tracked, const TaskList& tasks, StreamHandle stream) {
  const std::int64_t n = points.own.count();
  if (n == 0) return clear(tasks.count, stream);
  initial_tasks<<<grid_size(n, point_threads), point_threads, 0, stream>>>(points, starts, least, order,
                                                                           tracked, tasks);
  check_launch(describe_points("points before the refinement", n));
}

void launch_tasks_from_starts(const GridPoints& points, TrackedPoint* tracked, const PointStart* starts,
                              const ScoreRange& scores, int order, const TaskList& tasks,
                              StreamHandle stream) {
  clear(tasks.count, stream);
  const std::int64_t n = points.own.count();
  if (n == 0) return;
  tasks_from_starts<<<grid_size(n, point_threads), point_threads, 0, stream>>>({points, tracked}, tracked,
                                                                               starts, scores, order, tasks);
  check_launch(describe_points("selecting starts", n));
}

void launch_early_tasks(const GridPoints& points, const TrackedPoint* tracked, const PointStart* starts,
                        const ScoreRange& scores, int order, const EarlyTasks& early, StreamHandle stream) {
  clear(early.count, stream);
  const std::int64_t n = points.own.count();
  if (n == 0) return;
  early_tasks<<<grid_size(n, point_threads), point_threads, 0, stream>>>({points, tracked}, starts, scores,
                                                                         order, early);
  limit_count<<<1, 1, 0, stream>>>(early.count, early.most);
  check_launch(describe_points("starts that may be needed later", n));
}

void launch_leave_out_early(const TaskList& tasks, std::int64_t max_count, const EarlyTasks& early,
                            StreamHandle stream) {
  if (max_count == 0) return;
  leave_out_early<<<grid_size(max_count, point_threads), point_threads, 0, stream>>>(tasks, early);
  check_launch(describe_points("leaving out starts", max_count));
}

void launch_put_back_early(const TaskList& tasks, std::int64_t max_count, RefineResult* results,
                           const EarlyTasks& early, StreamHandle stream) {
  if (max_count == 0) return;
  put_back_early<<<grid_size(max_count, point_threads), point_threads, 0, stream>>>(tasks, results, early);
  check_launch(describe_points("putting back starts", max_count));
}

void launch_accept_results(const GridPoints& points, const RefineTasks& tasks, const RefineResult* results,
                           TrackedPoint* tracked, std::uint8_t* fresh, StreamHandle stream) {
  fill(fresh + points.own.first, 0, points.own.count(), stream);
  if (tasks.max_count == 0) return;
  accept_results<<<grid_size(tasks.max_count, point_threads), point_threads, 0, stream>>>(tasks, results,
                                                                                          tracked, fresh);
  check_launch(describe_points("accepting results", tasks.max_count));
}

void launch_read_halo(std::span<const HaloSource> others, TrackedPoint* tracked, std::uint8_t* fresh,
                      StreamHandle stream) {
  for (; !others.empty(); others = others.subspan(std::min<std::size_t>(others.size(), HaloSources::most))) {
    HaloSources all;
    std::int64_t longest = 0;
    const auto some = others.first(std::min<std::size_t>(others.size(), HaloSources::most));
    std::ranges::copy(some, all.from);
    for (const HaloSource& other : some) longest = std::max(longest, other.points.count());
    if (longest == 0) continue;
    constexpr int points_of_block = 32;
    const dim3 blocks(grid_size(longest, points_of_block), static_cast<unsigned>(some.size()));
    read_halo<<<blocks, point_threads, 0, stream>>>(all, tracked, fresh);
    check_launch(describe_points("points of other GPUs", longest));
  }
}

void launch_recovery_tasks(const GridPoints& points, const TrackedPoint* tracked, const std::uint8_t* fresh,
                           const TaskList& tasks, StreamHandle stream) {
  clear(tasks.count, stream);
  const std::int64_t n = points.own.count();
  if (n == 0) return;
  recovery_tasks<<<grid_size(n, point_threads), point_threads, 0, stream>>>({points, tracked}, fresh, tasks);
  check_launch(describe_points("front of the recovery", n));
}

}  // namespace dic::kernels
