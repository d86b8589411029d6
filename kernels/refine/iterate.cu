#include <dic/kernels/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <limits>

#include "refine/gathered.cuh"
#include "refine/point.cuh"
#include "refine/sliding.cuh"

// Gauss-Newton iterations. A warp has a few points. In turns, all its lanes add up the sums of one point
// after the other, and then every point is moved by a lane of its own: so the warp's points share the long
// scalar part of an iteration. A point that is done makes room for the next.
namespace dic::kernels {
namespace {

/// Points of a warp: as many as leave their pixels in the first-level cache.
constexpr int most_points = 8;
/// 80 registers for a thread; 128 for the longer windows of the quintic spline, and for sums in double.
template <int kDegree>
constexpr int warps_sliding = kDegree == 3 ? 12 : 8;
constexpr int warps_gathering = 8;
constexpr int most_patient_points = 8;  ///< of a block: one for each of its warps
constexpr int blocks_per_multiprocessor = 2;
constexpr std::int16_t most_iterations = std::numeric_limits<std::int16_t>::max();  ///< that results can tell
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int least_blocks = 1;  // fewer registers would spill there
#else
constexpr int least_blocks = blocks_per_multiprocessor;
#endif

/// The tasks of a block, in the order in which its lanes ask for them. of_unfinished: only those that the
/// variants before left; where they are few, they are listed, so that lanes need not go through all others.
template <bool of_unfinished>
struct Queue {
  static constexpr int most_listed = of_unfinished ? 1024 : 1;
  /// Neighbours find each other's pixels in the cache; but what is unfinished may lie along an edge, and is
  /// for all blocks.
  static constexpr int most_at_once = of_unfinished ? 16 : 128;
  std::int64_t count;  ///< of all blocks
  TaskOrder order;
  int taken, unfinished;
  std::int32_t listed[most_listed];

  /// By one thread of the block. tasks: at least 1.
  __device__ void fill(const RefineFrame& frame, std::int64_t tasks) {
    count = tasks;
    order = TaskOrder::of(count, frame.reference.points_in_a_row, gridDim.x, most_at_once);
    taken = unfinished = 0;
  }
  /// The next task; no_task where there is none.
  __device__ std::int32_t take() {
    for (;;) {
      const int number = atomicAdd(&taken, 1);
      if (of_unfinished && unfinished <= most_listed) return number < unfinished ? listed[number] : no_task;
      const std::int64_t at = place(number);
      if (at >= order.places) return no_task;
      const std::int64_t task = order.task_at(at);
      if (task < count) return static_cast<std::int32_t>(task);
    }
  }
  /// How many the variants before left. By all threads.
  __device__ int list_unfinished(const RefineResult* results) {
    for (int number = static_cast<int>(threadIdx.x); place(number) < order.places;
         number += static_cast<int>(blockDim.x)) {
      const std::int64_t task = order.task_at(place(number));
      if (task >= count || results[task].status != kernels::unfinished) continue;
      const int at = atomicAdd(&unfinished, 1);
      if (at < most_listed) listed[at] = static_cast<std::int32_t>(task);
    }
    __syncthreads();
    return unfinished;
  }

 private:
  __device__ std::int64_t place(int number) const {
    const std::int64_t tile = number / order.of_block * std::int64_t{gridDim.x} + blockIdx.x;
    return tile * order.of_block + number % order.of_block;
  }
};

/// Makes a point ready for an iteration, or the next one, if there is any.
template <typename AnyPoint, typename AnyQueue>
__device__ void make_ready(AnyPoint& point, AnyQueue& queue) {
  for (bool ready = false; !ready;) {
    if (!point.has_task()) {
      const std::int32_t task = queue.take();
      if (task == no_task) return;
      point.begin(task);
    }
    ready = point.has_task() && point.may_iterate();
  }
}

template <int kOrder, int kWarps, typename Variant>
__device__ void refine_tasks(const RefineFrame& frame) {
  using Own = Progress<kOrder, typename Variant::Real>;
  __shared__ Own all_progress[kWarps][most_points];
  __shared__ Queue<Variant::exact> queue;
  const std::int64_t count = frame.tasks.count();
  if (count == 0) return;
  if (threadIdx.x == 0) queue.fill(frame, count);
  __syncthreads();
  const int waiting =
      Variant::exact ? queue.list_unfinished(frame.results) : static_cast<int>(count / gridDim.x);
  const int points_of_warp = min(max(waiting / kWarps, 1), most_points);  // few: over all warps
  Own* progress = all_progress[threadIdx.x / warp_size];
  const int lane = lane_index();
  if (lane < most_points) progress[lane].task = no_task;
  Point<kOrder, Variant> point(frame, progress[lane % most_points]);
  const bool has_point = lane < points_of_warp;
  for (;;) {
    if (has_point) make_ready(point, queue);
    __syncwarp();
    unsigned left = __ballot_sync(all_lanes, has_point && point.has_task());
    if (left == 0) return;
    for (; left != 0; left &= left - 1) {
      Own& p = progress[__ffs(left) - 1];
      Variant::sum(frame, p.at, p.totals[lane]);
    }
    __syncwarp();
    if (has_point && point.has_task()) point.iterate();
  }
}

template <int kDegree, int kOrder>
__global__ void __launch_bounds__(warps_sliding<kDegree>* warp_size, least_blocks)
    refine_sliding(const __grid_constant__ RefineFrame frame) {
  refine_tasks<kOrder, warps_sliding<kDegree>, Sliding<kDegree, kOrder>>(frame);
}

/// Goes on where the fast variant stopped.
template <int kDegree, int kOrder>
__global__ void __launch_bounds__(warps_gathering* warp_size, least_blocks)
    refine_gathering(const __grid_constant__ RefineFrame frame) {
  refine_tasks<kOrder, warps_gathering, Gathering<kDegree, kOrder>>(frame);
}

/// A block does some points at once: its warps add up parts of each, then every point is moved by a lane of
/// the first warp.
template <int kDegree, int kOrder>
__global__ void __launch_bounds__(Patient<kDegree, kOrder>::parts* warp_size, least_blocks)
    refine_patiently(const __grid_constant__ RefineFrame frame) {
  using Variant = Patient<kDegree, kOrder>;
  static_assert(most_patient_points <= Variant::parts);
  __shared__ Progress<kOrder, double> progress[most_patient_points];
  __shared__ double parts[most_patient_points][Variant::parts][warp_size];
  __shared__ Queue<true> queue;
  const std::int64_t count = frame.tasks.count();
  if (count == 0) return;
  if (threadIdx.x == 0) queue.fill(frame, count);
  __syncthreads();
  const int points = min(queue.list_unfinished(frame.results), most_patient_points);
  const int warp = threadIdx.x / warp_size, lane = lane_index();
  const bool has_point = static_cast<int>(threadIdx.x) < points;
  if (threadIdx.x < most_patient_points) progress[threadIdx.x].task = no_task;
  Point<kOrder, Variant> point(frame, progress[threadIdx.x % most_patient_points]);
  for (;;) {
    if (has_point) make_ready(point, queue);
    if (!__syncthreads_or(has_point && point.has_task())) return;
    for (int p = 0; p < points; ++p)
      if (progress[p].task != no_task) parts[p][warp][lane] = Variant::sum_part(frame, progress[p].at, warp);
    __syncthreads();
    if (warp < points && progress[warp].task != no_task) {
      double total = parts[warp][0][lane];
      for (int part = 1; part < Variant::parts; ++part) total += parts[warp][part][lane];
      progress[warp].totals[lane] = total;
    }
    __syncthreads();
    if (has_point && point.has_task()) point.iterate();
  }
}

// ---- launches ----

/// Queues all variants.
template <int kDegree, int kOrder>
void launch(const RefineFrame& frame, const Stream& on, Event* most_done) {
  const StreamHandle stream = on.handle();
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "Asking for the device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "Asking for the number of multiprocessors");
  const auto blocks = static_cast<unsigned>(
      std::min<std::int64_t>(frame.tasks.most, multiprocessors * blocks_per_multiprocessor));
  refine_sliding<kDegree, kOrder><<<blocks, warps_sliding<kDegree> * warp_size, 0, stream>>>(frame);
  if (most_done) most_done->record(on);
  refine_gathering<kDegree, kOrder><<<blocks, warps_gathering * warp_size, 0, stream>>>(frame);
  refine_patiently<kDegree, kOrder>
      <<<blocks, Patient<kDegree, kOrder>::parts * warp_size, 0, stream>>>(frame);
}

template <int kDegree>
void launch_of_degree(const RefineFrame& frame, int order, const Stream& stream, Event* most_done) {
  if (order == 0) launch<kDegree, 0>(frame, stream, most_done);
  if (order == 1) launch<kDegree, 1>(frame, stream, most_done);
  if (order == 2) launch<kDegree, 2>(frame, stream, most_done);
}

}  // namespace

void launch_refine(const RefineReference& reference, const RefineOptions& options,
                   const PreparedSubset* subsets, const float* matrices, const CoefficientPair* coefficients,
                   const RefineTasks& tasks, RefineResult* results, const Stream& stream, Event* most_done) {
  if (tasks.most == 0) return;
  const RefineFrame frame{reference,
                          coefficients,
                          subsets,
                          matrices,
                          tasks,
                          results,
                          Deal(options.subset),
                          static_cast<float>(options.tolerance),
                          static_cast<float>(options.min_zncc),
                          std::min<int>(options.max_iterations, most_iterations)};
  if (options.interpolation == Interpolation::cubic)
    launch_of_degree<3>(frame, options.order, stream, most_done);
  else
    launch_of_degree<5>(frame, options.order, stream, most_done);
  check_launch("refinement");
}

}  // namespace dic::kernels
