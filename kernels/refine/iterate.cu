#include <dic/kernels/refine.hpp>
#include <dic/shared/icgn.hpp>

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
/// 80 registers for a thread; 128 for the longer windows of the quintic spline.
template <int kDegree>
constexpr int warps_of_block = kDegree == 3 ? 12 : 8;
constexpr int blocks_per_multiprocessor = 2;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int least_blocks = 1;  // fewer registers would spill there
#else
constexpr int least_blocks = blocks_per_multiprocessor;
#endif

/// The tasks of a block, in the order in which its lanes ask for them.
class Queue {
 public:
  /// All threads of the block.
  __device__ Queue(int& taken, const RefineFrame& frame) : taken_(taken), frame_(frame) {
    if (threadIdx.x == 0) taken = 0;
    __syncthreads();
  }
  /// The next task; beyond the count where there is none.
  __device__ std::int64_t take() {
    const TaskOrder& order = frame_.order;
    for (;;) {
      const int number = atomicAdd(&taken_, 1);
      const std::int64_t tile = number / order.of_block * std::int64_t{gridDim.x} + blockIdx.x;
      const std::int64_t place = tile * order.of_block + number % order.of_block;
      if (place >= order.places) return frame_.count;
      const std::int64_t task = order.task_at(place);
      if (task < frame_.count) return task;
    }
  }

 private:
  int& taken_;
  const RefineFrame& frame_;
};

template <int kDegree, int kOrder, typename Variant>
__device__ void refine_tasks(const RefineFrame& frame) {
  __shared__ Progress<kOrder> all_progress[warps_of_block<kDegree>][most_points];
  __shared__ int taken;
  Queue queue(taken, frame);
  Progress<kOrder>* progress = all_progress[threadIdx.x / warp_size];
  const int lane = lane_index();
  if (lane < most_points) progress[lane].task = no_task;
  Point<kOrder, Variant> point(frame, progress[lane % most_points]);
  const bool has_point = lane < frame.points_of_warp;
  for (;;) {
    for (bool ready = !has_point; !ready;) {
      if (!point.has_task()) {
        const std::int64_t task = queue.take();
        if (task >= frame.count) break;
        point.begin(static_cast<std::int32_t>(task));
      }
      ready = point.has_task() && point.may_iterate();
    }
    __syncwarp();
    unsigned left = __ballot_sync(all_lanes, has_point && point.has_task());
    if (left == 0) return;
    for (; left != 0; left &= left - 1) {
      Progress<kOrder>& p = progress[__ffs(left) - 1];
      Variant::sum(frame, p.at, p.totals[lane]);
    }
    __syncwarp();
    if (has_point && point.has_task()) point.iterate();
  }
}

template <int kDegree, int kOrder>
__global__ void __launch_bounds__(warps_of_block<kDegree>* warp_size, least_blocks)
    refine_sliding(const __grid_constant__ RefineFrame frame) {
  refine_tasks<kDegree, kOrder, Sliding<kDegree, kOrder>>(frame);
}

/// Goes on where the fast variant stopped.
template <int kDegree, int kOrder>
__global__ void __launch_bounds__(warps_of_block<kDegree>* warp_size, least_blocks)
    refine_gathering(const __grid_constant__ RefineFrame frame) {
  refine_tasks<kDegree, kOrder, Gathering<kDegree, kOrder>>(frame);
}

// ---- launches ----

/// Queues both variants; few tasks are spread over all warps.
template <int kDegree, int kOrder>
void launch(RefineFrame frame, StreamHandle stream) {
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "Asking for the device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "Asking for the number of multiprocessors");
  constexpr std::int64_t warps = warps_of_block<kDegree>;
  const std::int64_t most_blocks = multiprocessors * blocks_per_multiprocessor;
  const auto share = [&](std::int64_t workers, std::int64_t most) {
    return static_cast<int>(std::clamp<std::int64_t>(frame.count / workers, 1, most));
  };
  frame.order = TaskOrder(frame.count, frame.reference.points_in_a_row, most_blocks);
  frame.points_of_warp = share(most_blocks * warps, most_points);
  const unsigned blocks =
      std::min(grid_size(frame.order.places, frame.order.of_block), static_cast<unsigned>(most_blocks));
  refine_sliding<kDegree, kOrder><<<blocks, warps * warp_size, 0, stream>>>(frame);
  refine_gathering<kDegree, kOrder><<<blocks, warps * warp_size, 0, stream>>>(frame);
}

template <int kDegree>
void launch_of_degree(const RefineFrame& frame, int order, StreamHandle stream) {
  if (order == 0) launch<kDegree, 0>(frame, stream);
  if (order == 1) launch<kDegree, 1>(frame, stream);
  if (order == 2) launch<kDegree, 2>(frame, stream);
}

}  // namespace

void launch_refine(const RefineReference& reference, const RefineOptions& options,
                   const PreparedSubset* subsets, const float* matrices, const CoefficientPair* coefficients,
                   const RefineTask* tasks, std::int64_t count, RefineResult* results, StreamHandle stream) {
  if (count == 0) return;
  const RefineFrame frame{reference,
                          coefficients,
                          subsets,
                          matrices,
                          tasks,
                          results,
                          count,
                          0,
                          {},
                          Deal(options.subset),
                          static_cast<float>(options.tolerance),
                          static_cast<float>(options.min_zncc),
                          options.max_iterations};
  if (options.interpolation == Interpolation::cubic)
    launch_of_degree<3>(frame, options.order, stream);
  else
    launch_of_degree<5>(frame, options.order, stream);
  check_launch("refinement");
}

}  // namespace dic::kernels
