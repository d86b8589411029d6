#pragma once

#include "ncc/scoring/scoring.cuh"

namespace dic::kernels {

/// Stores the peak of a pair whose scores a block has in shared memory, in rows `stride` apart; values
/// between the rows are `undefined`.
__device__ inline void find_peak(const JobView& view, Criterion criterion, const float* surface, int stride,
                                 Peak* out) {
  const auto search = [&](auto&& is_candidate) {
    Best best = Best::none();
    for (int i = threadIdx.x; i < stride * view.ny; i += blockDim.x)
      if (surface[i] > best.score && is_candidate(i)) best = {surface[i], i};
    return best_of_block(best);
  };
  const Best best = search([](int) { return true; });
  const Best second = search([&](int i) { return best.index >= 0 && is_far(i, best.index, stride); });
  if (threadIdx.x < warp_size)
    store_peak(
        view, criterion, {best.score, best.index % stride, best.index / stride}, second.score, out,
        [&](int x, int y) { return surface[y * stride + x]; }, thread_of_block());
}

/// Scores of the shifts of a pair in shared memory; rows are `stride` apart.
struct ScoreTile {
  const float* scores;
  int stride;

  __device__ float at(int column, int row) const { return scores[row * stride + column]; }
};

/// The best of a thread's scores in a column of shifts.
struct ColumnBest {
  int column;
  float score = undefined;

  __device__ void take(float other) { score = fmaxf(score, other); }
};

/// First shift, row by row, that scores at least `least`, in the columns of this warp's threads.
template <int count>
__device__ int find_shift(const JobView& view, const ColumnBest (&thread_columns)[count], float least,
                          const ScoreTile& tile) {
  const int lane = threadIdx.x % warp_size;
  unsigned own = 0;  // bit mask of the thread's columns
#pragma unroll
  for (int i = 0; i < count; ++i) own |= thread_columns[i].score >= least ? 1u << i : 0;
  int index = after_all_shifts;
  for (unsigned lanes = __ballot_sync(all_lanes, own != 0); lanes != 0; lanes &= lanes - 1) {
    const int holder = __ffs(lanes) - 1;
    const unsigned holder_columns = __shfl_sync(all_lanes, own, holder);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if ((holder_columns >> i & 1) == 0) continue;
      const int column = __shfl_sync(all_lanes, thread_columns[i].column, holder);
#pragma unroll 1
      for (int row = lane; row < view.ny; row += warp_size)
        if (tile.at(column, row) >= least) index = min(index, row << 16 | column);
    }
  }
  return __reduce_min_sync(all_lanes, index);
}

__device__ inline bool is_far(int from, int to) { return abs(from - to) > 2; }

/// First of 5 columns that include all columns within 2 of `column`; at the edges they include others.
__device__ inline int first_near(const JobView& view, int column) {
  return max(min(column - 2, view.nx - 5), 0);
}

/// Stores the peak of a pair whose scores a block has in shared memory. Places without a score are NaN,
/// including those up to column 5 if there are fewer columns of shifts. thread_columns: every shift belongs
/// to one column of one thread. scale: factor of the scores.
template <int count>
__device__ void find_peak(const JobView& view, Criterion criterion, const ColumnBest (&thread_columns)[count],
                          const ScoreTile& tile, Peak* out, float scale = 1) {
  __syncthreads();
  float highest = undefined;
#pragma unroll
  for (const ColumnBest& best : thread_columns) highest = fmaxf(highest, best.score);
  // Rounding may lift several shifts above 1: the first of them is the peak.
  highest = fminf(max_of_warp(highest), inverse(scale));
  Best best = Best::none();
  if (highest > undefined) best = {highest, find_shift(view, thread_columns, highest, tile)};
  best = best_of_warps(best);

  const int peak_row = best.index >> 16, peak_column = best.index & 0xffff;
  float second = undefined;
#pragma unroll
  for (const ColumnBest& other : thread_columns)
    if (is_far(other.column, peak_column)) second = fmaxf(second, other.score);
  const int first_column = first_near(view, peak_column);
#pragma unroll 1
  for (int row = threadIdx.x; row < view.ny; row += blockDim.x) {
    if (!is_far(row, peak_row)) continue;
#pragma unroll
    for (int i = 0; i < 5; ++i) second = fmaxf(second, tile.at(first_column + i, row));
  }
  second = best_of_warps({max_of_warp(second), 0}).score;
  if (threadIdx.x < warp_size)
    store_peak(
        view, criterion, {best.score * scale, peak_column, peak_row}, second * scale, out,
        [&](int x, int y) { return tile.at(x, y) * scale; }, thread_of_block());
}

/// First shift, row by row, that scores at least `least`, and the best score of a lane's rows in the columns
/// near that shift, outside the rows near it. For a warp in which a lane has rows `lane` and lane + 32, of at
/// most 64.
struct FirstShift {
  int row = 0xffff, column = 0;  // larger than all rows
  float beside = undefined;

  /// Takes a column that has a shift that scores at least `least`; columns must come from left to right.
  __device__ void take_column(const JobView& view, int candidate, float least, const ScoreTile& tile) {
    const float* const near = tile.scores + first_near(view, candidate);
    const auto look_at = [&](int lane_row, bool& is_one) {
      float best = undefined;
      if (lane_row >= view.ny) return best;
      is_one = tile.at(candidate, lane_row) >= least;
#pragma unroll
      for (int i = 0; i < 5; ++i) best = fmaxf(best, near[lane_row * tile.stride + i]);
      return best;
    };
    const int upper = threadIdx.x, lower = upper + warp_size;
    bool is_upper = false, is_lower = false;
    const float upper_best = look_at(upper, is_upper);
    const float lower_best = view.ny > warp_size ? look_at(lower, is_lower) : undefined;
    const unsigned rows = __ballot_sync(all_lanes, is_upper);
    const int first = rows != 0 ? __ffs(rows) - 1 : warp_size - 1 + __ffs(__ballot_sync(all_lanes, is_lower));
    if (first >= row) return;  // columns come from left to right
    row = first, column = candidate;
    beside = is_far(upper, row) ? upper_best : undefined;
    if (is_far(lower, row)) beside = fmaxf(beside, lower_best);
  }
};

/// As find_peak, for a block of one warp that has all shifts of a pair: lane x has column x and, if there is
/// a tail, some shifts of column 32.
template <bool has_tail>
__device__ void find_peak_of_warp(const JobView& view, Criterion criterion, float column_best,
                                  float tail_best, const ScoreTile& tile, Peak* out, float scale = 1) {
  const int lane = threadIdx.x;
  __syncwarp();
  const float highest =
      fminf(max_of_warp(has_tail ? fmaxf(column_best, tail_best) : column_best), inverse(scale));
  FirstShift peak;
  if (highest > undefined) {
    for (unsigned columns = __ballot_sync(all_lanes, column_best >= highest); columns != 0;
         columns &= columns - 1)
      peak.take_column(view, __ffs(columns) - 1, highest, tile);
    if (has_tail && __any_sync(all_lanes, tail_best >= highest))
      peak.take_column(view, warp_size, highest, tile);
  }
  float second = peak.beside;
  if (is_far(lane, peak.column)) second = fmaxf(second, column_best);
  if (has_tail && is_far(warp_size, peak.column)) second = fmaxf(second, tail_best);
  store_peak(
      view, criterion, {highest * scale, peak.column, peak.row}, max_of_warp(second) * scale, out,
      [&](int x, int y) { return tile.at(x, y) * scale; }, static_cast<int>(opaque(lane)));
}

}  // namespace dic::kernels
