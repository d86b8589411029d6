// Excludes libcu++, which nothing here needs and which takes longer to compile than the rest of this file.
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>

#include "points/points.cuh"

namespace dic::kernels {
namespace {

// ---- islands ----

constexpr int island_threads = 128;

/// The points of an island that this thread has found, in shared memory.
struct Island {
  std::int32_t* first;
  DIC_HOST_DEVICE std::int32_t& operator[](int k) const { return first[k * island_threads]; }
};

__global__ void __launch_bounds__(point_threads)
    find_support(const __grid_constant__ FramePoints points, track::NeighbourSupport* supports) {
  for_each_point(points.grid.known,
                 [&](std::int32_t i) { supports[i] = track::neighbour_support(points, i); });
}

__global__ void __launch_bounds__(island_threads)
    drop_unconfirmed(const __grid_constant__ FramePoints points, const track::NeighbourSupport* supports,
                     TrackedPoint* tracked, const __grid_constant__ PointList dropped) {
  __shared__ std::int32_t islands[track::kSmallIsland * island_threads];
  const PointRange& known = points.grid.known;
  for_each_task(known.count(), island_threads, threadIdx.x, [&](std::int64_t task) {
    const auto i = static_cast<std::int32_t>(known.first + task);
    if (supports[i] == 0 || !track::unconfirmed(points, supports, i, Island{islands + threadIdx.x})) return;
    tracked[i].result.status = Status::low_correlation;
    append(dropped, i);
  });
}

__global__ void __launch_bounds__(point_threads)
    restore(const __grid_constant__ PointList dropped, TrackedPoint* tracked) {
  for_each_point(*dropped.count,
                 [&](std::int32_t k) { tracked[dropped.points[k]].result.status = Status::ok; });
}

// ---- lost points ----

constexpr int wave_blocks = 2;  ///< per multiprocessor, resident together: they wait for each other
constexpr int wave_threads = 512;

/// The nearest measured point, and the wave that reached this point from there.
struct Source {
  std::int32_t point = -1, wave = -1;
};

struct WaveCounts {
  std::int32_t reached, trackable;
};

struct LostState {
  Source* sources;               ///< [count]
  PointList lost;                ///< points that are not measured
  std::int32_t* trackable_lost;  ///< number of lost points that are trackable
  WaveCounts* waves;             ///< [3]: counts of the last wave, of this one, and of the next one
};

struct LostArguments {
  FramePoints points;
  TrackedPoint* tracked;
  LostState state;
  int radius, width, height;
};

__global__ void __launch_bounds__(point_threads) list_lost(const __grid_constant__ LostArguments args) {
  const FramePoints& points = args.points;
  for_each_point(points.grid.count, [&](std::int32_t i) {
    const bool measured = points.status(i) == Status::ok;
    args.state.sources[i] = measured ? Source{i, 0} : Source{};
    if (measured) return;
    append(args.state.lost, i);
    if (points.trackable(i)) count_up(args.state.trackable_lost);
  });
}

/// Takes the source of the first neighbour that the last wave reached. Other threads may be writing
/// neighbours that this wave reaches; these qualify neither with their old nor with their new value.
__device__ void reach(const LostArguments& args, std::int32_t i, int wave, WaveCounts& counts) {
  const FramePoints& points = args.points;
  Source* sources = args.state.sources;
  if (sources[i].wave >= 0) return;
  std::int32_t from = -1;
  points.for_each_neighbour(i, [&](std::int32_t n) {
    if (from < 0 && sources[n].wave == wave - 1) from = sources[n].point;
  });
  if (from < 0) return;
  sources[i] = {from, wave};
  count_up(&counts.reached);
  if (!points.trackable(i)) return;
  count_up(&counts.trackable);
  if (track::has_left_image(points, i, from, args.radius, args.width, args.height))
    args.tracked[i].result.status = Status::out_of_image;
}

/// Sets the status of lost points, wave by wave. Ends at once if no trackable point is lost: blocks then do
/// not wait for each other or for other kernels.
__global__ void __launch_bounds__(wave_threads, wave_blocks)
    classify_lost(const __grid_constant__ LostArguments args) {
  const auto all = cooperative_groups::this_grid();
  const LostState& state = args.state;
  const std::int32_t lost = *state.lost.count;
  std::int32_t unclassified = *state.trackable_lost;
  for (int wave = 1; unclassified > 0; ++wave) {
    WaveCounts& counts = state.waves[wave % 3];
    for_each_task(lost, wave_threads, threadIdx.x,
                  [&](std::int64_t k) { reach(args, state.lost.points[k], wave, counts); });
    // At this point all blocks have read the counts of the wave before the last.
    if (all.thread_rank() == 0) state.waves[(wave + 1) % 3] = {};
    all.sync();
    if (counts.reached == 0) break;
    unclassified -= counts.trackable;
  }
}

std::size_t counts_bytes() { return 2 * sizeof(std::int32_t) + 3 * sizeof(WaveCounts); }

LostState lost_state(void* workspace, std::int64_t count) {
  auto* counts = static_cast<std::int32_t*>(workspace);
  auto* waves = reinterpret_cast<WaveCounts*>(counts + 2);
  auto* sources = reinterpret_cast<Source*>(waves + 3);
  return {sources, {reinterpret_cast<std::int32_t*>(sources + count), counts}, counts + 1, waves};
}

}  // namespace

void launch_drop_unconfirmed(const GridPoints& points, TrackedPoint* tracked,
                             track::NeighbourSupport* supports, const PointList& dropped,
                             StreamHandle stream) {
  clear(dropped.count, stream);
  const std::int64_t n = points.known.count();
  if (n == 0) return;
  const FramePoints frame{points, tracked};
  find_support<<<grid_size(n, point_threads), point_threads, 0, stream>>>(frame, supports);
  drop_unconfirmed<<<grid_size(n, island_threads), island_threads, 0, stream>>>(frame, supports, tracked,
                                                                                dropped);
  check_launch(describe_points("islands", n));
}

void launch_restore_dropped(const PointList& dropped, TrackedPoint* tracked, StreamHandle stream) {
  constexpr unsigned blocks = 64;  // islands are small and few
  restore<<<blocks, point_threads, 0, stream>>>(dropped, tracked);
  check_launch("restoring islands");
}

std::size_t classify_lost_workspace_bytes(std::int64_t count) {
  return counts_bytes() + static_cast<std::size_t>(count) * (sizeof(Source) + sizeof(std::int32_t));
}

void launch_classify_lost(const GridPoints& points, TrackedPoint* tracked, int radius, int width, int height,
                          void* workspace, StreamHandle stream) {
  if (points.count == 0) return;
  LostArguments args{{points, tracked}, tracked, lost_state(workspace, points.count), radius, width, height};
  fill(workspace, 0, counts_bytes(), stream);
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "Reading the current device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "Reading the properties of the device");
  list_lost<<<grid_size(points.count, point_threads), point_threads, 0, stream>>>(args);
  void* arguments[] = {&args};
  const unsigned blocks =
      std::min(grid_size(points.count, wave_threads), static_cast<unsigned>(wave_blocks * multiprocessors));
  check(cudaLaunchCooperativeKernel(classify_lost, dim3(blocks), dim3(wave_threads), arguments, 0, stream),
        describe_points("lost points", points.count));
}

}  // namespace dic::kernels
