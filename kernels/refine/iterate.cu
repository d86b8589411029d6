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
template <int kDegree>
constexpr int most_points = kDegree == 3 ? 4 : 8;
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
  __device__ Queue(int& taken, int in_a_row) : taken_(taken), in_a_row_(in_a_row) {
    if (threadIdx.x == 0) taken = 0;
    __syncthreads();
  }
  /// The next task; beyond the count where there is none.
  __device__ std::int64_t take() {
    const int number = atomicAdd(&taken_, 1);
    const std::int64_t row = number / in_a_row_ * std::int64_t{gridDim.x} + blockIdx.x;
    return row * in_a_row_ + number % in_a_row_;
  }

 private:
  int& taken_;
  int in_a_row_;
};

template <int kDegree, int kOrder, typename Variant>
__device__ void refine_tasks(const RefineFrame& frame) {
  __shared__ Progress<kOrder> all_progress[warps_of_block<kDegree>][most_points<kDegree>];
  __shared__ int taken;
  Queue queue(taken, frame.tasks_in_a_row);
  Progress<kOrder>* progress = all_progress[threadIdx.x / warp_size];
  const int lane = lane_index();
  Point<kOrder, Variant> point(frame, progress[lane % most_points<kDegree>]);
  bool has_task = false, more = lane < frame.points_of_warp;
  for (;;) {
    bool ready = false;
    while (!ready && (has_task || more)) {
      if (has_task) {
        ready = has_task = point.may_iterate();
      } else {
        const std::int64_t task = queue.take();
        more = task < frame.count;
        has_task = more && point.begin(task);
      }
    }
    __syncwarp();
    unsigned left = __ballot_sync(all_lanes, ready);
    if (left == 0) return;
    for (; left != 0; left &= left - 1) {
      Progress<kOrder>& p = progress[__ffs(left) - 1];
      p.totals[lane] = Variant::sum(frame, p.at);
    }
    __syncwarp();
    if (ready) point.iterate();
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
  constexpr std::int64_t warps = warps_of_block<kDegree>, most_in_a_row = 64;
  const std::int64_t most_blocks = multiprocessors * blocks_per_multiprocessor;
  const auto share = [&](std::int64_t workers, std::int64_t most) {
    return static_cast<int>(std::clamp<std::int64_t>(frame.count / workers, 1, most));
  };
  frame.tasks_in_a_row = share(most_blocks, most_in_a_row);
  frame.points_of_warp = share(most_blocks * warps, most_points<kDegree>);
  const unsigned blocks =
      std::min(grid_size(frame.count, frame.tasks_in_a_row), static_cast<unsigned>(most_blocks));
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
                   const PreparedSubset* subsets, const float* matrices, const float* coefficients,
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
                          0,
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
