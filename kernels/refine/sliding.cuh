#pragma once

#include "refine/iteration.cuh"
#include "refine/spline_weights.cuh"

// The fast variant, for rectangles under small strain. A lane goes down the rows of a piece of a subset
// column, so that a pixel loads only degree + 1 new coefficients. A block of rows uses the knots at its
// middle: if the displacement crosses a knot within the block, the spline's polynomials are continued beyond
// it. A row of coefficients is reduced to value and x-slope at one position. Each pixel is corrected to first
// order by its distance from there; the vertical weights are linear in the displacement.
namespace dic::kernels {

/// A displacement along one column of the subset, from row to row.
template <int kOrder>
struct Slope {
  float now, step, bend = 0;  ///< value; its change to the next row; change of that change

  __device__ Slope(const Polynomial<float, polynomial_degree<kOrder>>& p, float i, float j)
      : now(p(i, j)), step(p.y) {
    if constexpr (kOrder == 2) {
      step += p.xy * i + 2 * p.yy * j;
      bend = 2 * p.yy;
    }
  }
  /// Makes `now` the difference from the value at j, beginning `rows` rows away.
  __device__ void start(float rows) {
    now = rows * (step + 0.5f * rows * bend);
    step += (rows + 0.5f) * bend;
  }
  __device__ void scale(float factor) {
    now *= factor;
    step *= factor;
    bend *= factor;
  }
  __device__ void next_step() {
    if constexpr (kOrder == 2) step += bend;
  }
  __device__ void next() {
    now += step;
    next_step();
  }
};

/// Weights around a position t, linear in the distance from it. For positions whose mean square distance is
/// `spread`, the linear weights have no bias. kFixed: the same weights for all positions.
template <int kDegree, bool kFixed>
struct Taps {
  float weight[kDegree + 1], slope[kDegree + 1];

  __device__ Taps(float t, float spread) {
    scaled_spline_weights(t, weight);
    if constexpr (!kFixed) {
      float bend[kDegree + 1];
      scaled_spline_slopes(t, slope);
      scaled_spline_bends(t, bend);
#pragma unroll
      for (int k = 0; k <= kDegree; ++k) weight[k] += 0.5f * spread * bend[k];
    }
  }
  __device__ void move(float distance) {
    if constexpr (!kFixed) {
#pragma unroll
      for (int k = 0; k <= kDegree; ++k) weight[k] += distance * slope[k];
    }
  }
};

/// The rows of coefficients around a pixel, reduced along x to values and x-slopes at one position. A ring
/// buffer: rows stay in place, the first row moves. The outer two of six rows have less than 1 % of the
/// weight: their slopes are left out.
template <int kDegree, bool kFixed>
struct RowWindow {
  static constexpr int rows = kDegree + 1, outer = kDegree == 5 ? 1 : 0;
  float value[rows], slope[rows];

  /// Factor of the other slopes that makes up for the omitted ones; the weights sum up to 120.
  __device__ static float slope_gain(const Taps<kDegree, kFixed>& y) {
    return 120 / (120 - (y.weight[0] + y.weight[kDegree]));
  }
  __device__ void push(int place, const float (&coefficients)[rows], const Taps<kDegree, kFixed>& x) {
    value[place] = product(x.weight, coefficients);
    if constexpr (!kFixed) slope[place] = product(x.slope, coefficients);
  }
  /// Value after the window moved by `moves` rows, at a distance dx from the position of the weights, less
  /// `offset`.
  __device__ float interpolate(int moves, const Taps<kDegree, kFixed>& y, float dx, float offset) const {
    float v = -offset;
#pragma unroll
    for (int k = 0; k < rows; ++k) v += y.weight[k] * value[(moves + k) % rows];
    if constexpr (kFixed) return v;
    float s = 0;
#pragma unroll
    for (int k = outer; k < rows - outer; ++k) s += y.weight[k] * slope[(moves + k) % rows];
    return v + dx * s;
  }

 private:
  __device__ static float product(const float (&weights)[rows], const float (&coefficients)[rows]) {
    float sum = weights[0] * coefficients[0];
#pragma unroll
    for (int k = 1; k < rows; ++k) sum += weights[k] * coefficients[k];
    return sum;
  }
};

/// Sum of a value over the rows of a column, and its moments in y, by prefix sums.
template <int kOrder>
struct ColumnMoments {
  float sum = 0, first = 0, second = 0;

  __device__ void add(float a, float b) {
    sum += a * b;
    if constexpr (kOrder >= 1) first += sum;
    if constexpr (kOrder == 2) second += first;
  }
  /// Adds the sums times i^a j^b to `out`, after the rows up to (not including) `end`.
  __device__ void finish(float i, float end, float* out) const {
    out[0] += sum;
    if constexpr (kOrder == 0) return;
    // A value that was added m rows before the end is contained in `first` m times, in `second` m (m + 1) / 2
    // times.
    const float j = end * sum - first;
    out[1] += i * sum;
    out[2] += j;
    if constexpr (kOrder == 1) return;
    out[3] += i * i * sum;
    out[4] += i * j;
    out[5] += end * (j - first) + (2 * second - first);
  }
};

/// The pixels of a lane in one pass.
struct Piece {
  int column, first;  ///< px from the subset's centre
  int rows;           ///< rows of this lane; 0 for a lane without pixels
  int common;         ///< rows that all lanes with pixels have
};

/// Coefficients of two rows.
template <int kDegree>
struct RowPair {
  float rows[2][kDegree + 1];
};

/// Reads one row after the other, and the coefficients of two rows at once.
template <int kDegree>
struct RowReader {
  const CoefficientPair* taps;
  const ReferencePixel* pixel;
  int stride;

  __device__ RowPair<kDegree> next_coefficients() {
    RowPair<kDegree> out;
#pragma unroll
    for (int k = 0; k <= kDegree; ++k) {
      const CoefficientPair pair = taps[k];
      out.rows[0][k] = pair.upper;
      out.rows[1][k] = pair.lower;
    }
    taps += 2 * step();
    return out;
  }
  __device__ ReferencePixel next_pixel() {
    const ReferencePixel out = *pixel;
    pixel += step();
    return out;
  }

 private:
  /// Returns the stride, but hides its origin from the compiler, which then multiplies and adds in one
  /// instruction instead of keeping multiples of the stride.
  __device__ int step() const {
    int out = stride;
    asm volatile("" : "+r"(out));
    return out;
  }
};

template <int kDegree, bool kFixed, int kOrder>
__device__ LaneSums<kOrder> slide(const RefineArguments& args, const IterationState<kOrder>& state,
                                  const Piece& piece) {
  const int stride = args.reference.layout.stride;
  const auto i = static_cast<float>(piece.column), first = static_cast<float>(piece.first);
  LaneSums<kOrder> sums;
  ColumnMoments<kOrder> moments_x, moments_y;
  for (int row = 0; row < piece.rows;) {
    asm volatile("" ::: "memory");  // keeps the displacement in shared memory
    const int rows = row < piece.common ? min(state.rows_of_block, piece.common - row) : 1, end = row + rows;
    const auto height = static_cast<float>(rows);
    const float above = 0.5f * (height - 1), j = first + static_cast<float>(row) + above;
    Slope<kOrder> x(state.displacement.x, i, j), y(state.displacement.y, i, j);
    const float knot_x = floorf(x.now), knot_y = floorf(y.now);
    const float spread = (height * height - 1) * (1.0f / 12);  // mean square distance from the middle
    const Taps<kDegree, kFixed> across(x.now - knot_x, spread * x.step * x.step);
    Taps<kDegree, kFixed> down(y.now - knot_y, spread * y.step * y.step);
    const int index = state.centre + (piece.first + row) * stride + piece.column;
    const int tap = index + state.shift + static_cast<int>(knot_x) - kDegree / 2 +
                    (static_cast<int>(knot_y) - kDegree / 2) * stride;
    constexpr int group = kDegree + 1;
    RowReader<kDegree> reader{args.coefficients + tap, args.reference.pixels + index, stride};
    RowWindow<kDegree, kFixed> window;
#pragma unroll
    for (int k = 0; k < group; k += 2) {
      const RowPair<kDegree> pair = reader.next_coefficients();
      window.push(k, pair.rows[0], across);
      window.push(k + 1, pair.rows[1], across);
    }
    x.start(-above);
    if constexpr (window.outer > 0 && !kFixed) x.scale(window.slope_gain(down));
    y.start(-above);
    down.move(y.now);
    const float offset = state.offset, contrast = state.contrast;
    RowPair<kDegree> input = reader.next_coefficients();
    const auto add_pixel = [&](int moves, const float(&coefficients)[group]) {
      const ReferencePixel f = reader.next_pixel();
      // In this order, no instruction waits for the pixel.
      const float e = window.interpolate(moves, down, x.now, offset) - contrast * f.grey;
      window.push(moves, coefficients, across);
      const float2 gradient = gradient_of(f);
      sums.values[0] += e;
      sums.values[1] += e * e;
      sums.values[2] += f.grey * e;
      moments_x.add(gradient.x, e);
      moments_y.add(gradient.y, e);
      x.next();
      down.move(y.step);
      y.next_step();
    };
    const auto add_rows = [&](int moves, bool both) {
      const RowPair<kDegree> ahead = reader.next_coefficients();
      add_pixel(moves, input.rows[0]);
      if (both) add_pixel(moves + 1, input.rows[1]);
      input = ahead;
    };
    for (; end - row >= group; row += group)
#pragma unroll
      for (int moves = 0; moves < group; moves += 2) add_rows(moves, true);
#pragma unroll
    for (int moves = 0; moves < kDegree; moves += 2) {
      if (row + moves >= end) break;
      add_rows(moves, row + moves + 1 < end);
    }
    row = end;
  }
  const float end = first + static_cast<float>(piece.rows);
  moments_x.finish(i, end, sums.values + 3);
  moments_y.finish(i, end, sums.values + 3 + LaneSums<kOrder>::terms);
  return sums;
}

/// Largest change of the displacement from one row to the next, within `radius`.
template <int kOrder>
__device__ float steepness(const IterationState<kOrder>& state, float radius) {
  const auto of = [radius](const Polynomial<float, polynomial_degree<kOrder>>& p) {
    if constexpr (kOrder == 2) return fabsf(p.y) + radius * (fabsf(p.xy) + 2 * fabsf(p.yy));
    return fabsf(p.y);
  };
  return fmaxf(of(state.displacement.x), of(state.displacement.y));
}
/// Root mean square of that change over a subset.
template <int kOrder>
__device__ float mean_steepness(const IterationState<kOrder>& state, float size) {
  const auto square = [size](const Polynomial<float, polynomial_degree<kOrder>>& p) {
    if constexpr (kOrder == 2) return p.y * p.y + size * size * (p.xy * p.xy + 4 * p.yy * p.yy) / 12;
    return p.y * p.y;
  };
  return sqrtf(fmaxf(square(state.displacement.x), square(state.displacement.y)));
}

/// The fast variant. `takes` tells whether it can process a subset at all. `sum` computes sums over all
/// pixels, distributed over the lanes as by LaneSums::Total.
template <int kDegree, int kOrder>
struct Sliding {
  using Real = float;
  static constexpr bool exact = false;
  /// After a step of at least this length, px, the next iteration may be less accurate: more iterations
  /// follow, and only errors of the last one stay.
  static constexpr float long_step = 0.2f;
  /// The gathering variant finishes points with a larger standard deviation of the displacement, px: this
  /// variant adds errors of about 0.1 % of it, rarely 1 %.
  static constexpr float most_sigma = kOrder == 2 ? 0.025f : 0.02f;
  /// The gathering variant also finishes points with more iterations: if convergence is slow, small errors
  /// add up.
  static constexpr int most_iterations = 6;
  __device__ static bool trusts(float sigma, int iterations) {
    return sigma < most_sigma && iterations <= most_iterations;
  }

  /// True if the next variant repeats a point that fails here from the start.
  __device__ static bool leaves(bool, int) { return true; }
  __device__ static bool takes(const RefineArguments& args, const PreparedSubset& s, bool whole) {
    return args.window.uniform() && (whole || (has_rectangles && !s.weighted));
  }

  /// Number of rows that use the same weights; 0: so few that this variant is not worth it. sigma: standard
  /// deviation of the displacement, px.
  __device__ static int rows_of_block(const RefineArguments& args, const IterationState<kOrder>& state,
                                      bool loose, float sigma) {
    const auto size = static_cast<float>(args.schedule.subset);
    const float steep = steepness(state, 0.5f * size);
    if (steep == 0) return all_rows;
    if (!(steep <= (loose ? 0.04f : 0.016f))) return 0;
    const float blocks = fmaxf(ceilf(0.5f * size * mean_steepness(state, size) / reach(loose, sigma)), 1);
    return static_cast<int>(ceilf(size / blocks));
  }

  __device__ static void sum(const RefineArguments& args, const IterationState<kOrder>& state, float& total) {
    if (has_rectangles && !state.whole) return sum_rectangle(args, state, total);
    const ColumnSchedule& schedule = args.schedule;
    const bool fixed = has_fixed && (kOrder == 0 || state.rows_of_block == all_rows);
    for (int pass = 0; pass < schedule.passes; ++pass) {
      const Piece piece = pass < schedule.whole_passes ? whole_column(schedule, pass)
                                                       : cut_column(schedule, pass - schedule.whole_passes);
      const auto sums =
          fixed ? slide<kDegree, has_fixed>(args, state, piece) : slide<kDegree, false>(args, state, piece);
      const float part = LaneSums<kOrder>::Total::sum_over_warp(sums.values);
      total = pass == 0 ? part : total + part;
    }
  }

 private:
  /// Largest distance of a position from that of weights and knots, px. The error that it causes grows with
  /// its square and with the error of the displacement itself: this distance makes it 1e-5 px for all points.
  __device__ static float reach(bool loose, float sigma) {
    constexpr float reach_scale = kOrder == 2 ? 0.0032f : 0.0036f;
    return loose ? 0.08f : fminf(reach_scale * rsqrtf(fminf(sigma, most_sigma)), 0.04f);
  }

  /// True if subsets that border or ROI clip to smaller rectangles have a loop of their own. With the quintic
  /// spline it would make the other loops 7 % slower, because they fill the instruction cache.
  static constexpr bool has_rectangles = kDegree == 3;
  /// True if fixed weights have a loop of their own. The two longest ones would not fit into the instruction
  /// cache.
  static constexpr bool has_fixed = kDegree == 3 || kOrder < 2;

  /// Sums over a rectangle, one column per lane. Lanes beyond the rectangle have no rows.
  __device__ static void sum_rectangle(const RefineArguments& args, const IterationState<kOrder>& state,
                                       float& total) {
#pragma unroll 1
    for (int pass = 0; pass < passes_over(args.subsets[state.point]); ++pass) {
      const Piece piece = column_of(args.subsets[state.point], pass);
      const auto sums = slide<kDegree, kOrder == 0>(args, state, piece);
      const float part = LaneSums<kOrder>::Total::sum_over_warp(sums.values);
      total = pass == 0 ? part : total + part;
    }
  }
  __device__ static int passes_over(const PreparedSubset& s) { return (s.right - s.left) / warp_size + 1; }
  __device__ static Piece column_of(const PreparedSubset& s, int pass) {
    const int column = s.left + pass * warp_size + lane_index();
    const int rows = column <= s.right ? s.bottom - s.top + 1 : 0;
    return {column, s.top, rows, rows};
  }

  __device__ static Piece whole_column(const ColumnSchedule& schedule, int pass) {
    const int radius = schedule.subset / 2, own = pass * warp_size + lane_index();
    return {own - radius, -radius, own < schedule.subset ? schedule.subset : 0, schedule.subset};
  }
  __device__ static Piece cut_column(const ColumnSchedule& schedule, int pass) {
    const int number = pass * warp_size + lane_index();
    const int piece = number / schedule.cut_columns,
              column = schedule.whole_columns() + number - piece * schedule.cut_columns;
    const int first = schedule.first_row(piece), radius = schedule.subset / 2;
    return {column - radius, first - radius,
            piece < schedule.pieces ? schedule.first_row(piece + 1) - first : 0,
            schedule.piece_rows - schedule.uneven()};
  }
};

}  // namespace dic::kernels
