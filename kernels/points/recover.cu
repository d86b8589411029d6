#include "points/points.cuh"

namespace dic::kernels {
namespace {

__global__ void __launch_bounds__(point_threads)
    fill_unrefined(const __grid_constant__ GridPoints points, const PointStart* starts,
                   TrackedPoint* tracked) {
  for_each_warp_of_points(points.own, [&](std::int32_t i, bool exists) {
    TrackedPoint point;
    if (exists) {
      const Status status = points.subsets[i].status;
      point.result.status = status == Status::ok ? Status::low_correlation : status;
      point.result.zncc = fmaxf(0, starts[i].score);
    }
    store_together(tracked, exists ? i : -1, point);
  });
}

__device__ RelativeShape truncated(RelativeShape shape, int order) {
#pragma unroll
  for (int term = 1; term < 6; ++term)
    if ((term < 3 ? 1 : 2) > order) shape.u[term] = shape.v[term] = 0;
  return shape;
}

/// Appends the tasks of those lanes that have one. All lanes of the warp.
__device__ void append_task(bool has_one, const RefineTask& task, RefineTask* tasks, std::int32_t* count) {
  std::int32_t place = -1;
  if (has_one) place = count_up(count);
  store_together(tasks, place, task);
}

__global__ void __launch_bounds__(point_threads)
    select(const __grid_constant__ FramePoints points, const PointStart* starts, float least, float below,
           int order, RefineTask* tasks, std::int32_t* count) {
  for_each_warp_of_points(points.grid.own, [&](std::int32_t i, bool exists) {
    const float score = exists ? starts[i].score : -1;
    const bool selected =
        score >= least && score < below && points.status(i) != Status::ok && points.trackable(i);
    RefineTask task;
    if (selected) task = {i, starts[i].u, starts[i].v, truncated(starts[i].shape, order)};
    append_task(selected, task, tasks, count);
  });
}

__global__ void __launch_bounds__(point_threads)
    accept(const RefineTask* tasks, const RefineResult* results, std::int64_t n, TrackedPoint* tracked,
           std::uint8_t* fresh, std::int32_t* fresh_count) {
  for_each_warp_of_points(PointRange{0, n}, [&](std::int32_t k, bool exists) {
    const std::int32_t i = exists ? tasks[k].point : -1;
    const bool taken = exists && track::replaces(results[k], tracked[i].result);
    TrackedPoint point;
    if (taken) point = {tasks[k].u, tasks[k].v, results[k]};
    store_together(tracked, taken ? i : -1, point);
    if (!taken || point.result.status != Status::ok) return;
    fresh[i] = 1;
    count_up(fresh_count);
  });
}

__global__ void __launch_bounds__(point_threads)
    list_front(const __grid_constant__ FramePoints points, const std::uint8_t* fresh, RefineTask* tasks,
               std::int32_t* count) {
  for_each_warp_of_points(points.grid.own, [&](std::int32_t i, bool exists) {
    const bool wanted = exists && track::wanted(points, fresh, i);
    RefineTask task;
    if (wanted) {
      const SplitShape start = split(track::between(points, track::best_neighbour(points, i), i));
      task = {i, start.u, start.v, start.rest};
    }
    append_task(wanted, task, tasks, count);
  });
}

}  // namespace

void launch_unrefined(const GridPoints& points, const PointStart* starts, TrackedPoint* tracked,
                      StreamHandle stream) {
  const std::int64_t n = points.own.count();
  if (n == 0) return;
  fill_unrefined<<<grid_size(n, point_threads), point_threads, 0, stream>>>(points, starts, tracked);
  check_launch(of_points("points before the refinement", n));
}

void launch_select(const GridPoints& points, const TrackedPoint* tracked, const PointStart* starts,
                   float least, float below, int order, RefineTask* tasks, std::int32_t* count,
                   StreamHandle stream) {
  clear(count, stream);
  const std::int64_t n = points.own.count();
  if (n == 0) return;
  select<<<grid_size(n, point_threads), point_threads, 0, stream>>>({points, tracked}, starts, least, below,
                                                                    order, tasks, count);
  check_launch(of_points("selecting starts", n));
}

void launch_accept(const GridPoints& points, const RefineTask* tasks, const RefineResult* results,
                   std::int64_t n, TrackedPoint* tracked, std::uint8_t* fresh, std::int32_t* fresh_count,
                   StreamHandle stream) {
  clear(fresh_count, stream);
  fill(fresh + points.own.first, 0, points.own.count(), stream);
  if (n == 0) return;
  accept<<<grid_size(n, point_threads), point_threads, 0, stream>>>(tasks, results, n, tracked, fresh,
                                                                    fresh_count);
  check_launch(of_points("accepting results", n));
}

void launch_front(const GridPoints& points, const TrackedPoint* tracked, const std::uint8_t* fresh,
                  RefineTask* tasks, std::int32_t* count, StreamHandle stream) {
  clear(count, stream);
  const std::int64_t n = points.own.count();
  if (n == 0) return;
  list_front<<<grid_size(n, point_threads), point_threads, 0, stream>>>({points, tracked}, fresh, tasks,
                                                                        count);
  check_launch(of_points("front of the recovery", n));
}

}  // namespace dic::kernels
