#include <dic/shared/icgn.hpp>

#include "points/points.cuh"
#include "points/value_counts.cuh"

namespace dic::kernels {
namespace {

constexpr int classes = track::ValueClasses::kCount;
static_assert(NoiseCounts::kCount == classes + 1, "the last one counts trackable points");

__global__ void __launch_bounds__(point_threads)
    count_certain(const __grid_constant__ FramePoints points, std::int32_t* counts) {
  __shared__ std::int32_t own[NoiseCounts::kCount];
  for (int k = threadIdx.x; k < NoiseCounts::kCount; k += point_threads) own[k] = 0;
  __syncthreads();
  for_each_point(points.grid.own, [&](std::int32_t i) {
    if (points.trackable(i)) count_up(own + classes);
    if (points.status(i) == Status::ok && points.zncc(i) >= track::kCertain)
      atomicAdd(own + track::ValueClasses::of(points.residual(i)), 1);
  });
  __syncthreads();
  for (int k = threadIdx.x; k < NoiseCounts::kCount; k += point_threads)
    if (own[k] != 0) atomicAdd(counts + k, own[k]);
}

__global__ void __launch_bounds__(point_threads)
    add_counts(const std::int32_t* parts, int copies, std::int32_t* sums) {
  const int k = static_cast<int>(blockIdx.x) * point_threads + static_cast<int>(threadIdx.x);
  if (k >= NoiseCounts::kCount) return;
  std::int32_t sum = 0;
  for (int part = 0; part < copies; ++part) sum += parts[part * NoiseCounts::kCount + k];
  sums[k] = sum;
}

/// The normal residual, by the lanes of a warp; 0 if too few points tell it.
__device__ float normal_residual(const std::int32_t* counts, std::int64_t large) {
  int certain = 0;
  for (int k = static_cast<int>(threadIdx.x) % warp_size; k < classes; k += warp_size) certain += counts[k];
  certain = __reduce_add_sync(all_lanes, certain);
  return track::knows_noise(certain, counts[classes], large) ? quantile_of<4>(counts) : 0;
}

__global__ void __launch_bounds__(point_threads)
    give_up_noise(const __grid_constant__ GridPoints points, const std::int32_t* counts, std::int64_t large,
                  TrackedPoint* tracked, std::uint8_t* fresh) {
  __shared__ float normal;
  if (threadIdx.x < warp_size) {
    const float known = normal_residual(counts, large);
    if (threadIdx.x == 0) normal = known;
  }
  __syncthreads();
  if (normal == 0) return;
  for_each_point(points.own, [&](std::int32_t i) {
    const PreparedSubset& s = points.subsets[i];
    if (s.status != Status::ok) return;
    const float contrast = icgn::residual_sd(0.5f, s.energy, s.count, s.fitted);
    if (!track::is_noise_only(contrast, normal)) return;
    tracked[i].result.status = Status::flat;
    fresh[i] = 0;
  });
}

}  // namespace

void launch_count_certain(const GridPoints& points, const TrackedPoint* tracked, std::int32_t* counts,
                          StreamHandle stream) {
  fill(counts, 0, NoiseCounts::kBytes, stream);
  const std::int64_t n = points.own.count();
  if (n == 0) return;
  constexpr unsigned most_blocks = 264;  // each adds its whole table
  count_certain<<<std::min(grid_size(n, point_threads), most_blocks), point_threads, 0, stream>>>(
      {points, tracked}, counts);
  check_launch(describe_points("certain points", n));
}

void launch_add_counts(const std::int32_t* parts, int copies, std::int32_t* sums, StreamHandle stream) {
  add_counts<<<grid_size(NoiseCounts::kCount, point_threads), point_threads, 0, stream>>>(parts, copies,
                                                                                          sums);
  check_launch("adding the counts of GPUs");
}

void launch_give_up_noise(const GridPoints& points, const std::int32_t* counts, std::int64_t large,
                          TrackedPoint* tracked, std::uint8_t* fresh, StreamHandle stream) {
  const std::int64_t n = points.own.count();
  if (n == 0) return;
  constexpr unsigned most_blocks = 528;  // each reads the whole table
  give_up_noise<<<std::min(grid_size(n, point_threads), most_blocks), point_threads, 0, stream>>>(
      points, counts, large, tracked, fresh);
  check_launch(describe_points("points of mere noise", n));
}

}  // namespace dic::kernels
