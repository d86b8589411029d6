#pragma once

#include "ncc/scoring.cuh"

namespace dic::kernels {

/// Stores the peak of a pair's scores, which a block has in shared memory, rows `stride` apart; what lies
/// between them is `undefined`.
__device__ inline void find_peak(const Frame& frame, Measure measure, const float* surface, int stride,
                                 Peak* out) {
  const auto search = [&](auto&& wanted) {
    Best best = Best::none();
    for (int i = threadIdx.x; i < stride * frame.ny; i += blockDim.x)
      if (surface[i] > best.score && wanted(i)) best = {surface[i], i};
    return best_of_block(best);
  };
  const Best best = search([](int) { return true; });
  const Best second = search([&](int i) { return best.index >= 0 && is_far(i, best.index, stride); });
  if (threadIdx.x < warp_size)
    store_peak(frame, measure, {best.score, best.index % stride, best.index / stride}, second.score, out,
               [&](int x, int y) { return surface[y * stride + x]; });
}

/// The best of the scores that a thread has in a column of shifts.
struct ColumnBest {
  int column;
  float score = undefined;

  __device__ void take(float other) { score = fmaxf(score, other); }
};

/// The first shift, row by row, that a column of this warp's threads has and that scores at least `least`.
template <int count>
__device__ int find_shift(const Frame& frame, const ColumnBest (&of_thread)[count], float least,
                          const float* tile, int stride) {
  constexpr unsigned all = 0xffffffffu;
  const int lane = threadIdx.x % warp_size;
  unsigned own = 0;  // columns of the thread's
#pragma unroll
  for (int i = 0; i < count; ++i) own |= of_thread[i].score >= least ? 1u << i : 0;
  int index = cuda::std::numeric_limits<int>::max();
  for (unsigned lanes = __ballot_sync(all, own != 0); lanes != 0; lanes &= lanes - 1) {
    const int holder = __ffs(lanes) - 1;
    const unsigned of_holder = __shfl_sync(all, own, holder);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if ((of_holder >> i & 1) == 0) continue;
      const int column = __shfl_sync(all, of_thread[i].column, holder);
#pragma unroll 1
      for (int row = lane; row < frame.ny; row += warp_size)
        if (tile[row * stride + column] >= least) index = min(index, row << 16 | column);
    }
  }
  return __reduce_min_sync(all, index);
}

/// Stores the peak of a pair whose scores a block has in shared memory, rows `stride` apart; those that it
/// does not have are NaN, beside fewer than 5 columns of shifts, too. of_thread: every shift counts in one of
/// a thread's columns. scale: of the scores. one_warp: the block is known to have no more.
template <bool one_warp = false, int count>
__device__ void find_peak(const Frame& frame, Measure measure, const ColumnBest (&of_thread)[count],
                          const float* tile, int stride, Peak* out, float scale = 1) {
  const int threads = one_warp ? warp_size : blockDim.x;
  const auto of_block = [](const Best& of_warp) { return one_warp ? of_warp : best_of_warps(of_warp); };
  wait_for_block<one_warp>();
  float highest = undefined;
#pragma unroll
  for (const ColumnBest& best : of_thread) highest = fmaxf(highest, best.score);
  // Rounding may lift several shifts above 1: the first of them is the peak.
  highest = fminf(max_of_warp(highest), inverse(scale));
  Best best = Best::none();
  if (highest > undefined) best = {highest, find_shift(frame, of_thread, highest, tile, stride)};
  best = of_block(best);

  const int peak_row = best.index >> 16, peak_column = best.index & 0xffff;
  const auto is_far = [](int from, int to) { return abs(from - to) > 2; };
  float second = undefined;
#pragma unroll
  for (const ColumnBest& other : of_thread)
    if (is_far(other.column, peak_column)) second = fmaxf(second, other.score);
  const int first_column = max(min(peak_column - 2, frame.nx - 5), 0);
#pragma unroll 1
  for (int row = threadIdx.x; row < frame.ny; row += threads) {
    if (!is_far(row, peak_row)) continue;
#pragma unroll
    for (int i = 0; i < 5; ++i) second = fmaxf(second, tile[row * stride + first_column + i]);
  }
  second = of_block({max_of_warp(second), 0}).score;
  if (one_warp || threadIdx.x < warp_size)
    store_peak(
        frame, measure, {best.score * scale, peak_column, peak_row}, second * scale, out,
        [&](int x, int y) { return tile[y * stride + x] * scale; },
        one_warp ? threadIdx.x : thread_of_block());
}

}  // namespace dic::kernels
