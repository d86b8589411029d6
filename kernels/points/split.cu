#include <dic/kernels/split.hpp>
#include <limits>

#include "points/points.cuh"

namespace dic::kernels {
namespace {

using track::kDirections;

constexpr int level_threads = 128, level_warps = level_threads / warp_size;  ///< one warp per tile

constexpr float no_residual = std::numeric_limits<float>::infinity();

/// Residual of the point of a node; no_residual if the node is no point or was not measured.
__device__ float residual_at(const SplitFrame& frame, std::int64_t node) {
  const std::int32_t point = node < 0 ? -1 : frame.points.point_at[node];
  if (point < 0) return no_residual;
  const RefineResult& result = frame.tracked[point].result;
  return result.status == Status::ok ? result.residual_sd : no_residual;
}

/// The places of a value among all samples in ascending order; equal samples share their places.
struct Places {
  int first = 0, end = 0;

  __device__ Places(const float* samples, float value) {
#pragma unroll 16
    for (int k = 0; k < track::kSamples; ++k) first += samples[k] < value, end += samples[k] <= value;
  }
  __device__ bool contain(int place) const { return first <= place && place < end; }
};

__global__ void __launch_bounds__(level_threads) find_levels(const __grid_constant__ SplitFrame frame) {
  static_assert(track::kSamples % warp_size == 0);
  __shared__ float of_all[level_warps][track::kSamples];
  const int lane = threadIdx.x % warp_size, warp = warp_index();
  float* samples = of_all[warp];
  track::ResidualLevel* of_tiles = frame.residual_levels + frame.tiles.count();
  for_each_task(frame.tiles.count(), level_warps, warp, [&](std::int64_t tile) {
    int count = 0;
    for (int k = lane; k < track::kSamples; k += warp_size) {
      samples[k] = residual_at(frame, track::sample_node(frame.tiles, static_cast<int>(tile), k,
                                                         frame.points.nx, frame.points.ny));
      count += __popc(__ballot_sync(all_lanes, samples[k] < no_residual));
    }
    if (lane == 0) of_tiles[tile] = {0, 0, count >= track::kLeastSamples};
    __syncwarp();
    for (int k = lane; k < track::kSamples && count >= track::kLeastSamples; k += warp_size) {
      const Places places(samples, samples[k]);
      if (places.contain(track::lower_rank(count))) of_tiles[tile].lower = samples[k];
      if (places.contain(track::median_rank(count))) of_tiles[tile].median = samples[k];
    }
    __syncwarp();  // the next tile overwrites the samples
  });
}

/// Median of the values of those of the first kTilesAround lanes that count; at least one must count. All
/// lanes of the warp must call it.
__device__ float median_of_lanes(float value, bool counts) {
  const int lane = threadIdx.x % warp_size;
  const unsigned counting = __ballot_sync(all_lanes, counts);
  int rank = 0;
  for (int k = 0; k < track::kTilesAround; ++k) {
    const float other = __shfl_sync(all_lanes, value, k);
    rank += (counting >> k & 1) && (other < value || (other == value && k < lane));
  }
  const bool here = counts && rank == track::around_rank(__popc(counting));
  return __shfl_sync(all_lanes, value, __ffs(static_cast<int>(__ballot_sync(all_lanes, here))) - 1);
}

__global__ void __launch_bounds__(level_threads)
    find_levels_around(const __grid_constant__ SplitFrame frame) {
  const track::Tiles& tiles = frame.tiles;
  const track::ResidualLevel* of_tiles = frame.residual_levels + tiles.count();
  const int lane = threadIdx.x % warp_size;
  for_each_task(tiles.count(), level_warps, warp_index(), [&](std::int64_t tile) {
    const int around = track::tile_around(tiles, static_cast<int>(tile), lane);
    const track::ResidualLevel own = around < 0 ? track::ResidualLevel{} : of_tiles[around];
    track::ResidualLevel level;
    if (__any_sync(all_lanes, own.known))
      level = {median_of_lanes(own.lower, own.known), median_of_lanes(own.median, own.known), true};
    if (lane == 0) frame.residual_levels[tile] = level;
  });
}

__device__ const track::ResidualLevel& level_at(const SplitFrame& frame, std::int32_t i) {
  return frame.residual_levels[frame.tiles.of(frame.points.node_of[i], frame.points.nx)];
}

__device__ SplitState state_of(const SplitFrame& frame, std::int32_t i) {
  const FramePoints points{frame.points, frame.tracked};
  const RefineResult& result = points.refined(i);
  const double subset = 2 * frame.radius + 1;
  if (result.status == Status::ok &&
      !track::is_doubtful(result.zncc, result.residual_sd, level_at(frame, i), subset * subset))
    return SplitState::trusted;
  return points.trackable(i) && points.has_parts(i) && result.status != Status::flat ? SplitState::open
                                                                                     : SplitState::unusable;
}

__global__ void __launch_bounds__(point_threads)
    find_open_points(const __grid_constant__ SplitFrame frame, const __grid_constant__ PointList open) {
  for_each_point(frame.points.count, [&](std::int32_t i) {
    const SplitState state = state_of(frame, i);
    frame.states[i] = state;
    frame.refuted[i] = 0;
    if (state == SplitState::open) append(open, i);
  });
}

__device__ std::int32_t trusted_towards(const SplitFrame& frame, std::int32_t i, track::Direction towards) {
  const GridPoints& grid = frame.points;
  return track::trusted_towards(
      grid.nx, grid.ny, grid.point_at, grid.node_of[i], towards, track::split_reach(frame.radius, frame.step),
      [&](std::int32_t point) { return frame.states[point] == SplitState::trusted; });
}

/// A possible measurement.
struct Candidate {
  ShapeParameters start;
  track::CountedPart part;

  __device__ bool exists() const { return part.pixels > 0; }
};

__device__ Candidate candidate(const SplitFrame& frame, std::int32_t i, int round, int direction) {
  Candidate out;
  if (frame.refuted[i] >> direction & 1) return out;
  const track::Direction towards = track::direction(direction);
  const std::int32_t source = trusted_towards(frame, i, towards);
  if (source < 0) return out;
  const FramePoints points{frame.points, frame.tracked};
  out.start = track::predicted_shape(points, source, i);
  out.part = track::part_to_measure({i, points.x(i), points.y(i), frame.radius}, towards, round, out.start,
                                    frame.image);
  return out;
}

/// True if one of the earlier directions, unless it is left out itself, leads to the same start. Each point
/// has kDirections lanes. All lanes of the warp must call it.
__device__ bool repeats(const Candidate& own) {
  const int lane = threadIdx.x % kDirections;
  bool taken = own.exists();
  for (int k = 0; k < kDirections; ++k) {
    ShapeParameters other;
    other.u = __shfl_sync(all_lanes, own.start.u, k, kDirections);
    other.v = __shfl_sync(all_lanes, own.start.v, k, kDirections);
    const bool counts = __shfl_sync(all_lanes, taken, k, kDirections);
    if (k < lane && counts && track::same_start(own.start, other)) taken = false;
  }
  return own.exists() && !taken;
}

__device__ std::int32_t add(const PartList& parts, const SplitFrame& frame, const Candidate& candidate) {
  const std::int32_t task = count_up(parts.count);
  const SubsetPart& part = candidate.part.part;
  PreparedSubset subset;
  subset.x = frame.points.x[part.point];
  subset.y = frame.points.y[part.point];
  subset.left = static_cast<std::int16_t>(part.left);
  subset.right = static_cast<std::int16_t>(part.right);
  subset.top = static_cast<std::int16_t>(part.top);
  subset.bottom = static_cast<std::int16_t>(part.bottom);
  subset.status = pending;
  parts.subsets[task] = subset;
  const SplitShape start = split(candidate.start);
  parts.tasks[task] = {task, start.u, start.v, start.rest};
  parts.most_residuals[task] = track::most_part_residual(level_at(frame, part.point), candidate.part.pixels);
  const PixelMasks masks(nullptr, 2 * frame.radius + 1);
  masks.write(part, parts.masks + std::int64_t{task} * masks.words_of());
  return task;
}

__global__ void __launch_bounds__(point_threads, 1)  // with two blocks, registers would spill
    list_parts(const __grid_constant__ SplitFrame frame, const std::int32_t* list, std::int32_t n,
               const SplitRounds rounds, const __grid_constant__ PartList parts) {
  static_assert(warp_size % kDirections == 0);
  const PointRange all{0, std::int64_t{rounds.count} * n * kDirections};
  for_each_warp_of_points(all, [&](std::int32_t at, bool exists) {
    Candidate own;
    const int round = rounds.first + at / kDirections / n;
    const std::int32_t i = exists ? list[at / kDirections % n] : -1;
    const bool is_open = exists && frame.states[i] == SplitState::open;
    if (is_open) own = candidate(frame, i, round, at % kDirections);
    // All lanes of a warp must look, also those of another round and those without a point.
    const bool repeated = rounds.first == 0 && repeats(own), left_out = round == 0 && repeated;
    const unsigned first = threadIdx.x % warp_size / kDirections * kDirections;
    const bool any = (__ballot_sync(all_lanes, own.exists()) >> first & ((1u << kDirections) - 1)) != 0;
    if (is_open && round == 0 && !any && threadIdx.x % kDirections == 0)
      frame.states[i] = SplitState::exhausted;
    PartSlot slot;
    if (own.exists() && !left_out) slot = {add(parts, frame, own), own.part.pixels};
    if (exists) parts.slots[at] = slot;
  });
}

/// A measurement of a part, where it ended and where it started.
struct MeasuredPart {
  const RefineResult& result;
  ShapeParameters found, predicted;

  __device__ MeasuredPart(const RefineTask& task, const RefineResult& measured)
      : result(measured),
        found(joined(task.u, task.v, measured.shape)),
        predicted(joined(task.u, task.v, task.start)) {}
};

/// The accepted measurement of least residual among those of a point in one round; -1 if there is none.
__device__ std::int32_t best_of_round(const PartList& parts, const PartSlot* slots,
                                      const RefineResult* results, const track::ResidualLevel& level) {
  std::int32_t best = -1;
  for (int k = 0; k < kDirections; ++k) {
    const PartSlot slot = slots[k];
    if (slot.task < 0) continue;
    const MeasuredPart part(parts.tasks[slot.task], results[slot.task]);
    if (track::is_accepted(part.result, part.found, part.predicted, level, slot.pixels) &&
        (best < 0 || part.result.residual_sd < results[best].residual_sd))
      best = slot.task;
  }
  return best;
}

__global__ void __launch_bounds__(point_threads)
    refute_directions(const __grid_constant__ SplitFrame frame, const std::int32_t* list, std::int64_t n,
                      const __grid_constant__ PartList parts, const RefineResult* results) {
  for_each_point(n, [&](std::int32_t at) {
    const std::int32_t i = list[at];
    if (frame.states[i] != SplitState::open) return;
    unsigned refuted = 0;
    for (int k = 0; k < kDirections; ++k) {
      const PartSlot slot = parts.slots[at * kDirections + k];
      if (slot.task < 0) continue;
      const MeasuredPart part(parts.tasks[slot.task], results[slot.task]);
      if (track::is_refuted(part.result, part.found, part.predicted, level_at(frame, i), slot.pixels))
        refuted |= 1u << k;
    }
    frame.refuted[i] = static_cast<std::uint16_t>(refuted);
  });
}

__global__ void __launch_bounds__(point_threads)
    take_parts(const __grid_constant__ SplitFrame frame, const std::int32_t* list, std::int64_t n, int rounds,
               const __grid_constant__ PartList parts, const RefineResult* results) {
  for_each_point(n, [&](std::int32_t at) {
    const std::int32_t i = list[at];
    if (frame.states[i] != SplitState::open) return;
    std::int32_t best = -1;
    for (int round = 0; round < rounds && best < 0; ++round)
      best = best_of_round(parts, parts.slots + (round * n + at) * kDirections, results, level_at(frame, i));
    if (best < 0) return;
    frame.tracked[i] = {parts.tasks[best].u, parts.tasks[best].v, results[best]};
    frame.states[i] = SplitState::replaced;
  });
}

__global__ void __launch_bounds__(point_threads)
    give_up_contradicted(const __grid_constant__ SplitFrame frame, const std::int32_t* list, std::int64_t n) {
  const FramePoints points{frame.points, frame.tracked};
  for_each_point(n, [&](std::int32_t at) {
    const std::int32_t i = list[at];
    if (frame.states[i] == SplitState::replaced || points.status(i) != Status::ok) return;
    const auto towards = [&](track::Direction direction) { return trusted_towards(frame, i, direction); };
    if (!track::is_confirmed(points, i, towards)) frame.tracked[i].result.status = Status::low_correlation;
  });
}

}  // namespace

void launch_find_open_points(const SplitFrame& frame, const PointList& open, StreamHandle stream) {
  clear(open.count, stream);
  const std::int64_t n = frame.points.count;
  if (n == 0) return;
  const unsigned blocks = grid_size(frame.tiles.count(), level_warps);
  find_levels<<<blocks, level_threads, 0, stream>>>(frame);
  find_levels_around<<<blocks, level_threads, 0, stream>>>(frame);
  find_open_points<<<grid_size(n, point_threads), point_threads, 0, stream>>>(frame, open);
  check_launch(describe_points("doubtful points", n));
}

void launch_list_parts(const SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                       const SplitRounds& rounds, const PartList& parts, StreamHandle stream) {
  clear(parts.count, stream);
  if (n == 0) return;
  const unsigned blocks = grid_size(rounds.count * n * kDirections, point_threads);
  list_parts<<<blocks, point_threads, 0, stream>>>(frame, points, static_cast<std::int32_t>(n), rounds,
                                                   parts);
  check_launch(describe_points("parts of subsets", n));
}

void launch_refute_directions(const SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                              const PartList& parts, const RefineResult* results, StreamHandle stream) {
  if (n == 0) return;
  refute_directions<<<grid_size(n, point_threads), point_threads, 0, stream>>>(frame, points, n, parts,
                                                                               results);
  check_launch(describe_points("refuted directions", n));
}

void launch_take_parts(const SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                       const SplitRounds& rounds, const PartList& parts, const RefineResult* results,
                       StreamHandle stream) {
  if (n == 0) return;
  take_parts<<<grid_size(n, point_threads), point_threads, 0, stream>>>(frame, points, n, rounds.count, parts,
                                                                        results);
  check_launch(describe_points("measurements of parts of subsets", n));
}

void launch_give_up_contradicted(const SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                                 StreamHandle stream) {
  if (n == 0) return;
  give_up_contradicted<<<grid_size(n, point_threads), point_threads, 0, stream>>>(frame, points, n);
  check_launch(describe_points("contradicted points", n));
}

}  // namespace dic::kernels
