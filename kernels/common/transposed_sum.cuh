#pragma once

#include "common/launch.cuh"

namespace dic::kernels {

/// Sums kCount <= 32 values of every lane over the warp, with about kCount shuffles: at every exchange, each
/// half of the lanes keeps half of the sums.
template <int kCount>
class TransposedSum {
 public:
  /// Returns the sum of value k in lane `lane_of(k)`. All lanes of the warp must call it.
  template <typename T>
  __device__ static T sum_over_warp(const T (&values)[kCount]) {
    return reduce<kCount, warp_size / 2>(values);
  }

  __device__ static constexpr int lane_of(int k) {
    int lane = 0;
    for (int n = kCount, offset = warp_size / 2; n > 1; n = (n + 1) / 2, offset /= 2) {
      const int half = (n + 1) / 2;
      if (k < half) continue;
      k -= half;
      lane |= offset;
    }
    return lane;
  }

 private:
  static_assert(kCount >= 1 && kCount <= warp_size);

  template <int kLeft, int kOffset, typename T>
  __device__ static T reduce(const T (&values)[kLeft]) {
    if constexpr (kOffset == 0) {
      return values[0];
    } else {
      constexpr int half = (kLeft + 1) / 2;
      const bool upper = threadIdx.x & kOffset;
      T sums[half];
#pragma unroll
      for (int k = 0; k < half; ++k) {
        if (k + half < kLeft) {
          const T given = upper ? values[k] : values[k + half];
          sums[k] = (upper ? values[k + half] : values[k]) + __shfl_xor_sync(all_lanes, given, kOffset);
        } else {
          sums[k] = values[k] + __shfl_xor_sync(all_lanes, values[k], kOffset);
        }
      }
      return reduce<half, kOffset / 2>(sums);
    }
  }
};

}  // namespace dic::kernels
