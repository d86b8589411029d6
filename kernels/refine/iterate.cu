#include <dic/kernels/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <limits>

#include "refine/gathered.cuh"
#include "refine/point.cuh"
#include "refine/sliding.cuh"

// Gauss-Newton iterations. A warp works on a few points: first all lanes sum over one point after the other,
// then one lane per point does the scalar part of the iteration, for all points of the warp at the same time.
// The next point replaces a finished one.
namespace dic::kernels {
namespace {

/// Largest number of points per warp whose pixels stay in the L1 cache.
constexpr int most_points = 8;
/// Number of warps: 12 leave a thread 80 registers, 8 leave 128, which the quintic spline and sums in double
/// need.
template <int kDegree>
constexpr int warps_sliding = kDegree == 3 ? 12 : 8;
constexpr int warps_gathering = 8;
constexpr int most_cooperative_points = 8;  ///< per block, one per warp
/// Tiles of tasks that a block takes at once. Large tiles keep neighbours in one block, whose cache has their
/// pixels. Unfinished points often lie close together, along an edge: small tiles distribute them over all
/// blocks. The slowest of them are distributed one by one, because a frame waits for their last block.
constexpr int sliding_tile = 128, gathering_tile = 16, cooperative_tile = 1;
constexpr int blocks_per_multiprocessor = 2;
constexpr std::int16_t most_iterations =
    std::numeric_limits<std::int16_t>::max();  ///< fits the type of the result
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int least_blocks = 1;  // with two blocks, registers would spill
#else
constexpr int least_blocks = blocks_per_multiprocessor;
#endif

/// The tasks of a block, which lanes take one by one. only_unfinished: only the tasks that earlier variants
/// left unfinished. If these are few, they are listed, so that lanes need not look at all others.
/// most_at_once: largest tile, tasks.
template <bool only_unfinished, int most_at_once>
struct Queue {
  static constexpr int most_listed = only_unfinished ? 1024 : 1;
  std::int64_t count;  ///< tasks of all blocks
  TaskOrder order;
  int taken, unfinished;
  std::int32_t listed[most_listed];

  /// Fills the queue. One thread of the block must call it. tasks: at least 1.
  __device__ void fill(const RefineArguments& args, std::int64_t tasks) {
    count = tasks;
    order = TaskOrder::make(count, args.reference.grid_columns, gridDim.x, most_at_once);
    taken = unfinished = 0;
  }
  /// Takes the next task; returns no_task if there is none.
  __device__ std::int32_t take() {
    for (;;) {
      const int number = atomicAdd(&taken, 1);
      if (only_unfinished && unfinished <= most_listed) return number < unfinished ? listed[number] : no_task;
      const std::int64_t at = place(number);
      if (at >= order.places) return no_task;
      const std::int64_t task = order.task_at(at);
      if (task < count) return static_cast<std::int32_t>(task);
    }
  }
  /// Lists the unfinished tasks of this block and returns their number. All threads must call it.
  __device__ int list_unfinished(const RefineResult* results) {
    for (int number = static_cast<int>(threadIdx.x); place(number) < order.places;
         number += static_cast<int>(blockDim.x)) {
      const std::int64_t task = order.task_at(place(number));
      if (task >= count || results[task].status != pending) continue;
      const int at = atomicAdd(&unfinished, 1);
      if (at < most_listed) listed[at] = static_cast<std::int32_t>(task);
    }
    __syncthreads();
    return unfinished;
  }

 private:
  __device__ std::int64_t place(int number) const {
    const std::int64_t tile = number / order.tile * std::int64_t{gridDim.x} + blockIdx.x;
    return tile * order.tile + number % order.tile;
  }
};

/// Takes tasks from the queue until the point is ready for an iteration, or the queue is empty.
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
__device__ void refine_tasks(const RefineArguments& args) {
  using Own = Progress<kOrder, typename Variant::Real>;
  __shared__ Own all_progress[kWarps][most_points];
  __shared__ Queue<Variant::exact, Variant::exact ? gathering_tile : sliding_tile> queue;
  const std::int64_t count = args.tasks.count();
  if (count == 0) return;
  if (threadIdx.x == 0) queue.fill(args, count);
  __syncthreads();
  const int waiting =
      Variant::exact ? queue.list_unfinished(args.results) : static_cast<int>(count / gridDim.x);
  const int points_of_warp =
      min(max(waiting / kWarps, 1), most_points);  // a few points are distributed over all warps
  Own* progress = all_progress[threadIdx.x / warp_size];
  const int lane = lane_index();
  if (lane < most_points) progress[lane].task = no_task;
  Point<kOrder, Variant> point(args, progress[lane % most_points]);
  const bool has_point = lane < points_of_warp;
  for (;;) {
    if (has_point) make_ready(point, queue);
    __syncwarp();
    unsigned left = __ballot_sync(all_lanes, has_point && point.has_task());
    if (left == 0) return;
    for (; left != 0; left &= left - 1) {
      Own& p = progress[__ffs(left) - 1];
      Variant::sum(args, p.state, p.totals[lane]);
    }
    __syncwarp();
    if (has_point && point.has_task()) point.iterate();
  }
}

template <int kDegree, int kOrder>
__global__ void __launch_bounds__(warps_sliding<kDegree>* warp_size, least_blocks)
    refine_sliding(const __grid_constant__ RefineArguments args) {
  refine_tasks<kOrder, warps_sliding<kDegree>, Sliding<kDegree, kOrder>>(args);
}

/// Continues with the tasks that refine_sliding left unfinished.
template <int kDegree, int kOrder>
__global__ void __launch_bounds__(warps_gathering* warp_size, least_blocks)
    refine_gathering(const __grid_constant__ RefineArguments args) {
  refine_tasks<kOrder, warps_gathering, Gathering<kDegree, kOrder>>(args);
}

/// Blocks per multiprocessor. A block has up to 8 points: its warps sum over parts of each, then one lane of
/// the first warp per point does the scalar part.
template <int kDegree, int kOrder>
constexpr int cooperative_blocks =
    kDegree == 5 && kOrder == 2 ? 1 : least_blocks;  // with more blocks, registers would spill
template <int kDegree, int kOrder>
__global__ void __launch_bounds__(Cooperative<kDegree, kOrder>::parts* warp_size,
                                  cooperative_blocks<kDegree, kOrder>)
    refine_cooperatively(const __grid_constant__ RefineArguments args) {
  using Variant = Cooperative<kDegree, kOrder>;
  static_assert(most_cooperative_points <= Variant::parts);
  __shared__ Progress<kOrder, double> progress[most_cooperative_points];
  __shared__ double parts[most_cooperative_points][Variant::parts][warp_size];
  __shared__ Queue<true, cooperative_tile> queue;
  const std::int64_t count = args.tasks.count();
  if (count == 0) return;
  if (threadIdx.x == 0) queue.fill(args, count);
  __syncthreads();
  const int points = min(queue.list_unfinished(args.results), most_cooperative_points);
  const int warp = threadIdx.x / warp_size, lane = lane_index();
  const bool has_point = static_cast<int>(threadIdx.x) < points;
  if (threadIdx.x < most_cooperative_points) progress[threadIdx.x].task = no_task;
  Point<kOrder, Variant> point(args, progress[threadIdx.x % most_cooperative_points]);
  for (;;) {
    if (has_point) make_ready(point, queue);
    if (!__syncthreads_or(has_point && point.has_task())) return;
    for (int p = 0; p < points; ++p)
      if (progress[p].task != no_task)
        parts[p][warp][lane] = Variant::sum_part(args, progress[p].state, warp);
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

/// Queues all variants, one after the other.
template <int kDegree, int kOrder>
void launch(const RefineArguments& args, const Stream& on, Event* most_done) {
  const StreamHandle stream = on.handle();
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "Asking for the device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "Asking for the number of multiprocessors");
  const auto blocks = [&](int warps) {
    const std::int64_t at_once = args.tasks.in_background ? warps * most_points / 2 : 1;
    return static_cast<unsigned>(std::min<std::int64_t>(grid_size(args.tasks.max_count, at_once),
                                                        multiprocessors * blocks_per_multiprocessor));
  };
  constexpr int sliding = warps_sliding<kDegree>, cooperative = Cooperative<kDegree, kOrder>::parts;
  refine_sliding<kDegree, kOrder><<<blocks(sliding), sliding * warp_size, 0, stream>>>(args);
  if (most_done) most_done->record(on);
  refine_gathering<kDegree, kOrder>
      <<<blocks(warps_gathering), warps_gathering * warp_size, 0, stream>>>(args);
  refine_cooperatively<kDegree, kOrder><<<blocks(cooperative), cooperative * warp_size, 0, stream>>>(args);
}

template <int kDegree>
void launch_order(const RefineArguments& args, int order, const Stream& stream, Event* most_done) {
  if (order == 0) launch<kDegree, 0>(args, stream, most_done);
  if (order == 1) launch<kDegree, 1>(args, stream, most_done);
  if (order == 2) launch<kDegree, 2>(args, stream, most_done);
}

}  // namespace

void launch_refine(const RefineImages& images, const RefineOptions& options, const PreparedSubsets& prepared,
                   const RefineTasks& tasks, RefineResult* results, const Stream& stream, Event* most_done) {
  if (tasks.max_count == 0) return;
  const RefineArguments args{images.reference,
                             images.current,
                             prepared.subsets,
                             prepared.matrices,
                             tasks,
                             results,
                             ColumnSchedule(options.subset),
                             static_cast<float>(options.tolerance),
                             static_cast<float>(options.min_zncc),
                             std::min<int>(options.max_iterations, most_iterations),
                             Window(options.weights, options.subset)};
  if (options.interpolation == Interpolation::cubic)
    launch_order<3>(args, options.order, stream, most_done);
  else
    launch_order<5>(args, options.order, stream, most_done);
  check_launch("refinement");
}

}  // namespace dic::kernels
