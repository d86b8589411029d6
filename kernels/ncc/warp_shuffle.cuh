#pragma once

#include "common/row_tasks.hpp"
#include "ncc/frame.cuh"

/// The loop of the warp-shuffle family. A warp computes 32 horizontally neighbouring shifts, one per lane. Of
/// the `moving` matrix 64 elements of a row lie in the lanes' registers as a ring that turns by one lane per
/// step; of the `fixed` matrix one element per step is broadcast. Per step: two shuffles for the ring, one
/// per fixed matrix.
namespace dic::kernels {

/// Elements are shuffled in registers of at least 32 bits.
template <typename T>
using Register = cuda::std::conditional_t<sizeof(T) < 4, std::uint32_t, T>;

template <typename T>
__device__ Register<T> load_or_zero(const Matrix<T>& matrix, int y, int x) {
  return y >= matrix.y0 && y < matrix.y1 ? matrix.at_or_zero(matrix.row(y), x) : T{0};
}

/// sums[k] += sum over rows y of [begin, end) and all x of moving[y + sy, x + sx + lane] * fixed[k][y, x].
/// All lanes of the warp must call it. `width`, `moving_width`: widths of the whole matrices.
template <typename T, typename Sum, int count>
__device__ void shuffle_rows(const Matrix<T>& moving, const Matrix<T>* fixed, int moving_width, int width,
                             int sx, int sy, int begin, int end, int lane, Sum (&sums)[count]) {
  constexpr unsigned all = 0xffffffffu;
  const int x_begin = max(0, -(sx + warp_size - 1));
  const int x_end = min(width, moving_width - sx);
  for (int y = begin; y < end; ++y) {
    auto low = load_or_zero(moving, y + sy, x_begin + sx + lane);
    for (int x = x_begin; x < x_end; x += warp_size) {
      auto high = load_or_zero(moving, y + sy, x + warp_size + sx + lane);
      Register<T> broadcast[count];
#pragma unroll
      for (int k = 0; k < count; ++k) broadcast[k] = load_or_zero(fixed[k], y, x + lane);
#pragma unroll 8
      for (int step = 0; step < warp_size; ++step) {
#pragma unroll
        for (int k = 0; k < count; ++k) multiply_add(sums[k], low, __shfl_sync(all, broadcast[k], step));
        low = __shfl_sync(all, lane == 0 ? high : low, lane + 1);
        high = __shfl_down_sync(all, high, 1);
      }
    }
  }
}

}  // namespace dic::kernels
