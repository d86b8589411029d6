#pragma once

#include <dic/shared/trust_rules.hpp>

#include "common/launch.cuh"

/// Quantiles of values that were counted by their class (track::ValueClasses).
namespace dic::kernels {

/// First lane at which the sum over lanes exceeds 1 / kParts of a total, -1 if there is none. below: sum
/// before all lanes, then sum before the returned lane. All lanes of a warp must call it.
template <int kParts>
__device__ int lane_of_quantile(int own, int total, int& below) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  int up_to_own = own;
  for (int offset = 1; offset < warp_size; offset *= 2) {
    const int before = __shfl_up_sync(all_lanes, up_to_own, offset);
    if (lane >= offset) up_to_own += before;
  }
  const unsigned beyond = __ballot_sync(all_lanes, kParts * (std::int64_t{below} + up_to_own) > total);
  const int found = __ffs(static_cast<int>(beyond)) - 1;
  below += __shfl_sync(all_lanes, up_to_own - own, max(found, 0));
  return found;
}

/// The end of the first class up to which there are more than 1 / kParts of all values counted in `counts`,
/// as track::ValueClasses::median (2) and lower_quartile (4); 0 if there are none. All lanes of a warp must
/// call it.
template <int kParts>
__device__ float quantile_of(const std::int32_t* counts) {
  constexpr int of_lane = track::ValueClasses::kCount / warp_size, part = of_lane / warp_size;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const auto sum = [counts](int first, int n) {
    int all = 0;
#pragma unroll 16
    for (int k = 0; k < n; ++k) all += counts[first + k];
    return all;
  };
  const int own = sum(lane * of_lane, of_lane);
  const int total = __reduce_add_sync(all_lanes, own);
  int below = 0;
  const int owner = lane_of_quantile<kParts>(own, total, below);
  if (owner < 0) return 0;
  const int first = owner * of_lane +
                    part * lane_of_quantile<kParts>(sum(owner * of_lane + part * lane, part), total, below);
  int k = first;
  while (kParts * std::int64_t{below += counts[k]} <= total) ++k;
  return track::ValueClasses::end(k);
}

}  // namespace dic::kernels
