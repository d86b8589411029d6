#pragma once

#include "refine/frame.cuh"
#include "refine/spline_weights.cuh"

// The fast variant, for whole subsets under small strain. A lane owns a piece of a subset column and slides
// down its rows, so that a pixel loads only degree + 1 new coefficients. It keeps to the knots at the middle
// of a block of rows: where the displacement crosses a knot within the block, the spline's polynomials are
// continued beyond it. Every row of coefficients is reduced to a value and an x-slope at one position; a
// pixel corrects to first order what its own position differs, and vertical weights follow the displacement
// to first order.
namespace dic::kernels {

/// A displacement along one column of the subset, from row to row.
template <int kOrder>
struct Slope {
  float now, step, bend = 0;  ///< value; how it changes to the next row; how that changes

  __device__ Slope(const Polynomial<float, polynomial_degree<kOrder>>& p, float i, float j)
      : now(p(i, j)), step(p.y) {
    if constexpr (kOrder == 2) {
      step += p.xy * i + 2 * p.yy * j;
      bend = 2 * p.yy;
    }
  }
  /// From row to row: the difference from the value at j, beginning `rows` rows away.
  __device__ void start(float rows) {
    now = rows * (step + 0.5f * rows * bend);
    step += (rows + 0.5f) * bend;
  }
  __device__ void next_step() {
    if constexpr (kOrder == 2) step += bend;
  }
  __device__ void next() {
    now += step;
    next_step();
  }
};

/// Weights around a position t and how they change with it: a straight line for positions whose mean square
/// distance from t is `spread`, without bias. Fixed: they do not change.
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
  __device__ void clear() {
#pragma unroll
    for (int k = 0; k <= kDegree; ++k) weight[k] = slope[k] = 0;
  }
};

/// The rows of coefficients around a pixel, reduced along x: values and x-slopes at one position. A ring:
/// rows keep their place, and the window turns.
template <int kDegree, bool kFixed>
struct RowWindow {
  static constexpr int rows = kDegree + 1;
  float value[rows], slope[rows];

  /// Takes in a row as the last but one of the window after `turn` moves.
  __device__ void push(int turn, const float (&coefficients)[rows], const Taps<kDegree, kFixed>& x) {
    value[turn % rows] = product(x.weight, coefficients);
    if constexpr (!kFixed) slope[turn % rows] = product(x.slope, coefficients);
  }
  /// After `turn` moves, at a distance dx from where the weights were taken; less `fit`.
  __device__ float interpolate(int turn, const Taps<kDegree, kFixed>& y, float dx, float fit) const {
    float v = -fit, s = 0;
#pragma unroll
    for (int k = 0; k <= kDegree; ++k) {
      v += y.weight[k] * value[(turn + k) % rows];
      if constexpr (!kFixed) s += y.weight[k] * slope[(turn + k) % rows];
    }
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

/// Sum of a value and its y-moments down the rows of a column, by prefix sums.
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
    // A value that was added m rows before the end is m times in `first`, m (m + 1) / 2 times in `second`.
    const float j = end * sum - first;
    out[1] += i * sum;
    out[2] += j;
    if constexpr (kOrder == 1) return;
    out[3] += i * i * sum;
    out[4] += i * j;
    out[5] += end * (j - first) + (2 * second - first);
  }
};

/// Which pixels a lane adds in one pass.
struct Piece {
  int column, first;  ///< px from the subset's centre
  int rows;           ///< that the warp goes through, the same in all lanes
  int owned;          ///< how many of these are this lane's: all, one less, none
  bool ragged;        ///< some lanes own one row less
};

/// What a pixel reads.
template <int kDegree>
struct RowInput {
  float coefficients[kDegree + 1];
  ReferencePixel pixel;
};

/// Reads rows one after the other.
template <int kDegree>
struct RowReader {
  const float* taps;
  const ReferencePixel* pixel;
  int stride;

  __device__ RowInput<kDegree> next() {
    RowInput<kDegree> row;
#pragma unroll
    for (int k = 0; k <= kDegree; ++k) row.coefficients[k] = taps[k];
    row.pixel = *pixel;
    int step = stride;
    asm volatile(""
                 : "+r"(step));  // so that it is multiplied and added in one instruction, not prepared in two
    taps += step;
    pixel += step;
    return row;
  }
};

template <int kDegree, bool kFixed, int kOrder>
__device__ LaneSums<kOrder> slide(const RefineFrame& frame, const Placed<kOrder>& at, const Piece& piece) {
  const int stride = frame.reference.layout.stride;
  const auto i = static_cast<float>(piece.column), first = static_cast<float>(piece.first);
  const int index = at.centre + piece.first * stride + piece.column;
  const ReferencePixel* pixels = frame.reference.pixels + index;
  const float* taps = frame.coefficients + (index + at.shift - kDegree / 2 * (stride + 1));

  LaneSums<kOrder> sums;
  ColumnMoments<kOrder> moments_x, moments_y;
  const int common = piece.ragged ? piece.rows - 1 : piece.rows;
  for (int row = 0; row < piece.rows;) {
    asm volatile("" ::: "memory");    // the displacement stays in shared memory
    const bool last = row == common;  // of a ragged piece: not every lane's
    const int rows = last ? 1 : min(at.rows_of_block, common - row), end = row + rows;
    const auto height = static_cast<float>(rows);
    const float above = 0.5f * (height - 1), j = first + static_cast<float>(row) + above;
    Slope<kOrder> x(at.displacement.x, i, j), y(at.displacement.y, i, j);
    const float knot_x = floorf(x.now), knot_y = floorf(y.now);
    const float spread = (height * height - 1) * (1.0f / 12);  // of the rows around their middle
    const Taps<kDegree, kFixed> across(x.now - knot_x, spread * x.step * x.step);
    Taps<kDegree, kFixed> down(y.now - knot_y, spread * y.step * y.step);
    // What lies below the piece may lie below the picture, where pixels are undefined.
    const int pixel_row = last && row >= piece.owned ? row - 1 : row;
    RowReader<kDegree> reader{taps + ((row + static_cast<int>(knot_y)) * stride + static_cast<int>(knot_x)),
                              pixels + (pixel_row - kDegree) * stride, stride};
    RowWindow<kDegree, kFixed> window{};
#pragma unroll
    for (int k = 0; k < kDegree; ++k) window.push(k, reader.next().coefficients, across);
    x.start(-above);
    y.start(-above);
    down.move(y.now);
    float offset = at.offset, contrast = at.contrast;
    if (row >= piece.owned) {
      down.clear();
      offset = contrast = 0;
    }

    RowInput<kDegree> input = reader.next();
    const auto add_row = [&](int turn) {
      const RowInput<kDegree> ahead = reader.next();
      window.push(turn + kDegree, input.coefficients, across);
      const ReferencePixel f = input.pixel;
      input = ahead;
      const float e = window.interpolate(turn, down, x.now, offset + contrast * f.grey);
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
    constexpr int group = kDegree + 1;
    for (; end - row >= group; row += group)
#pragma unroll
      for (int turn = 0; turn < group; ++turn) add_row(turn);
#pragma unroll
    for (int turn = 0; turn < kDegree; ++turn) {
      if (row + turn == end) break;
      add_row(turn);
    }
    row = end;
  }
  const float end = first + static_cast<float>(piece.rows);
  moments_x.finish(i, end, sums.values + 3);
  moments_y.finish(i, end, sums.values + 3 + LaneSums<kOrder>::terms);
  return sums;
}

struct SlidingLimits {
  /// How far a position may be from the one that weights and knots were taken at, px.
  float correction;
  /// Most that the displacement may change from one row to the next, px: blocks of rows would become short.
  float steepest;
};
/// Displacements then differ by some 1e-5 px from those of exact weights.
constexpr SlidingLimits usual_limits{0.04f, 0.016f}, loose_limits{0.12f, 0.04f};

/// Most that the displacement changes from one row to the next.
template <int kOrder>
__device__ float steepness(const Placed<kOrder>& at, float radius) {
  const auto of = [radius](const Polynomial<float, polynomial_degree<kOrder>>& p) {
    if constexpr (kOrder == 2) return fabsf(p.y) + radius * (fabsf(p.xy) + 2 * fabsf(p.yy));
    return fabsf(p.y);
  };
  return fmaxf(of(at.displacement.x), of(at.displacement.y));
}

/// The fast variant as a whole. `takes` says whether it can do a subset at all; `sum` adds up its pixels over
/// the warp.
template <int kDegree, int kOrder>
struct Sliding {
  static constexpr bool exact = false;
  /// Where convergence is slow, the small errors of this variant add up.
  static constexpr int most_iterations = 8;
  /// An iteration after a step that was no shorter, px, may be loose: others follow, and only the last one's
  /// errors stay.
  static constexpr float far = 0.1f;
  /// Errors grow with those of the displacement, px (standard deviation): they are a thousandth, rarely a
  /// hundredth of it.
  __device__ static bool trusts(float sigma) { return sigma < (kOrder == 2 ? 0.025f : 0.02f); }

  __device__ static bool takes(const RefineFrame& frame, const PreparedSubset& s) {
    const int size = frame.deal.size;
    return s.right - s.left == size - 1 && s.bottom - s.top == size - 1 && !s.weighted;
  }

  /// Rows that share weights; 0 where the deformation is too large.
  __device__ static int rows_of_block(const RefineFrame& frame, const Placed<kOrder>& at, bool loose) {
    const SlidingLimits limits = loose ? loose_limits : usual_limits;
    const auto size = static_cast<float>(frame.deal.size);
    const float steep = steepness(at, 0.5f * size);
    if (steep == 0) return all_rows;
    if (!(steep <= limits.steepest)) return 0;
    const float typical = steepness(at, 0.3f * size);  // on average over the subset
    const float blocks = fmaxf(ceilf(0.5f * size * typical / limits.correction), 1);
    return static_cast<int>(ceilf(size / blocks));
  }

  __device__ static float sum(const RefineFrame& frame, const Placed<kOrder>& at) {
    const Deal& deal = frame.deal;
    const int whole_passes = (deal.whole() + warp_size - 1) / warp_size, passes = whole_passes + deal.passes;
    const bool fixed = has_fixed && (kOrder == 0 || at.rows_of_block == all_rows);
    float total = 0;
    for (int pass = 0; pass < passes; ++pass) {
      const Piece piece =
          pass < whole_passes ? whole_column(deal, pass) : cut_column(deal, pass - whole_passes);
      const auto sums =
          fixed ? slide<kDegree, has_fixed>(frame, at, piece) : slide<kDegree, false>(frame, at, piece);
      total += LaneSums<kOrder>::Total::of(sums.values);
    }
    return total;
  }

 private:
  /// Is there a loop of its own for fixed weights? The longest two do not fit the instruction cache.
  static constexpr bool has_fixed = kDegree == 3 || kOrder < 2;

  __device__ static Piece whole_column(const Deal& deal, int pass) {
    const int radius = deal.size / 2, own = pass * warp_size + lane_index();
    return {min(own, deal.size - 1) - radius, -radius, deal.size, own < deal.size ? deal.size : 0, false};
  }
  __device__ static Piece cut_column(const Deal& deal, int pass) {
    const int pieces = deal.left * deal.pieces, own = pass * warp_size + lane_index(),
              number = min(own, pieces - 1);
    const int piece = number / deal.left, column = number - piece * deal.left, radius = deal.size / 2;
    const int first = deal.first_row(piece), end = own < pieces ? deal.first_row(piece + 1) : first;
    return {deal.whole() + column - radius, first - radius, deal.rows, end - first, deal.ragged()};
  }
};

}  // namespace dic::kernels
