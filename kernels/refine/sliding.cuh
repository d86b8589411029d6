#pragma once

#include "refine/frame.cuh"
#include "refine/spline_weights.cuh"

// The fast variant, for whole subsets under small strain. A lane owns a piece of a subset column and slides
// down its rows, so that a pixel loads only degree + 1 new coefficients. It keeps to the knots at the middle
// of its piece: where the displacement crosses a knot within the piece, the spline's polynomials are
// continued beyond it. Every row of coefficients is reduced to a value and an x-slope at one position; a
// pixel corrects to first order what its own position differs, and corrects the vertical weights likewise.
namespace dic::kernels {

/// Weights around a position t and how they change with it: a straight line for positions whose mean square
/// distance from t is `spread`, without bias.
template <int kDegree>
struct Taps {
  float weight[kDegree + 1], slope[kDegree + 1];

  __device__ Taps(float t, float spread) {
    float bend[kDegree + 1];
    scaled_spline_weights(t, weight);
    scaled_spline_slopes(t, slope);
    scaled_spline_bends(t, bend);
#pragma unroll
    for (int k = 0; k <= kDegree; ++k) weight[k] += 0.5f * spread * bend[k];
  }
  __device__ void clear() {
#pragma unroll
    for (int k = 0; k <= kDegree; ++k) weight[k] = slope[k] = 0;
  }
};

/// The rows of coefficients around a pixel, reduced along x: values and x-slopes at one position.
template <int kDegree>
struct RowWindow {
  float value[kDegree + 1], slope[kDegree + 1];

  /// Moves down by one row.
  __device__ void push(const float (&coefficients)[kDegree + 1], const Taps<kDegree>& x) {
#pragma unroll
    for (int k = 0; k < kDegree; ++k) {
      value[k] = value[k + 1];
      slope[k] = slope[k + 1];
    }
    float v = x.weight[0] * coefficients[0], s = x.slope[0] * coefficients[0];
#pragma unroll
    for (int k = 1; k <= kDegree; ++k) {
      v += x.weight[k] * coefficients[k];
      s += x.slope[k] * coefficients[k];
    }
    value[kDegree] = v;
    slope[kDegree] = s;
  }
  /// All rows at a position `change` further right.
  __device__ void shift(float change) {
#pragma unroll
    for (int k = 0; k <= kDegree; ++k) value[k] += change * slope[k];
  }
  /// Less `offset`, at (dx, dy) from where the weights were taken.
  __device__ float interpolate(const Taps<kDegree>& y, float dx, float dy, float offset) const {
    float v = -offset, s = 0;
#pragma unroll
    for (int k = 0; k <= kDegree; ++k) {
      const float weight = y.weight[k] + dy * y.slope[k];
      v += weight * value[k];
      s += weight * slope[k];
    }
    return v + dx * s;
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

/// A displacement along one column of the subset: its value and how it grows from row to row.
template <int kOrder>
struct Slope {
  float now, step, bend = 0;

  __device__ Slope(const Polynomial<float, polynomial_degree<kOrder>>& p, float i, float j)
      : now(p(i, j)), step(p.y) {
    if constexpr (kOrder == 2) {
      step += p.xy * i + 2 * p.yy * j;
      bend = p.yy;
    }
  }
  /// From row to row: the difference from the value at j, beginning `rows` rows away.
  __device__ void start(float rows) {
    now = rows * (step + rows * bend);
    step += (2 * rows + 1) * bend;
  }
  __device__ void next() {
    now += step;
    if constexpr (kOrder == 2) step += 2 * bend;
  }
};

/// Which pixels a lane adds in one pass.
struct Piece {
  int column, first;  ///< px from the subset's centre
  int rows;           ///< that the warp goes through, the same in all lanes
  int owned;          ///< how many of these are this lane's: all, one less, none
  bool ragged;        ///< some lanes own one row less
};

/// What a pixel reads, a row ahead of its use.
template <int kDegree>
struct RowInput {
  float coefficients[kDegree + 1];
  ReferencePixel pixel;

  __device__ RowInput(const RefineFrame& frame, int tap, int index) : pixel(frame.reference.pixels[index]) {
#pragma unroll
    for (int k = 0; k <= kDegree; ++k) coefficients[k] = frame.coefficients[tap + k];
  }
};

template <int kDegree, int kOrder>
__device__ LaneSums<kOrder> slide(const RefineFrame& frame, const Placed<kOrder>& at, const Piece& piece,
                                  int rows_of_block) {
  const int stride = frame.reference.layout.stride;
  const auto i = static_cast<float>(piece.column), first = static_cast<float>(piece.first);
  const float middle = first + 0.5f * static_cast<float>(piece.rows - 1);
  const float knot_x = floorf(at.displacement.x(i, middle)), knot_y = floorf(at.displacement.y(i, middle));
  int index = (at.subset(frame).y + piece.first) * stride + at.subset(frame).x + piece.column;
  int tap = index + at.shift + (static_cast<int>(knot_y) - kDegree / 2) * stride + static_cast<int>(knot_x) -
            kDegree / 2;

  LaneSums<kOrder> sums;
  RowWindow<kDegree> window{};
  ColumnMoments<kOrder> moments_x, moments_y;
  const int common = piece.ragged ? piece.rows - 1 : piece.rows;
  float position = 0;
  for (int row = 0; row < piece.rows;) {
    asm volatile("" ::: "memory");    // the displacement stays in shared memory
    const bool last = row == common;  // of a ragged piece: not every lane's
    const int rows = last ? 1 : min(rows_of_block, common - row);
    const auto height = static_cast<float>(rows);
    const float above = 0.5f * (height - 1), j = first + static_cast<float>(row) + above;
    Slope<kOrder> x(at.displacement.x, i, j), y(at.displacement.y, i, j);
    const float spread = (height * height - 1) * (1.0f / 12);  // of the rows around their middle
    const Taps<kDegree> across(x.now - knot_x, spread * x.step * x.step);
    Taps<kDegree> down(y.now - knot_y, spread * y.step * y.step);
    if (row == 0) {
#pragma unroll
      for (int k = 0; k < kDegree; ++k, tap += stride)
        window.push(RowInput<kDegree>(frame, tap, index).coefficients, across);
    } else {
      window.shift(x.now - position);
    }
    position = x.now;
    float offset = at.offset;
    if (last && row >= piece.owned) {
      down.clear();
      offset = 0;
      index -= stride;  // what lies below the piece may lie below the picture, where pixels are undefined
    }
    x.start(-above);
    y.start(-above);
    const int end = row + rows;

#pragma unroll 3
    for (; row < end; ++row) {
      const RowInput<kDegree> input(frame, tap, index);
      tap += stride;
      index += stride;

      window.push(input.coefficients, across);
      const float g = window.interpolate(down, x.now, y.now, offset);
      sums.values[0] += g;
      sums.values[1] += g * g;
      sums.values[2] += input.pixel.grey * g;
      moments_x.add(input.pixel.dx, g);
      moments_y.add(input.pixel.dy, g);
      x.next();
      y.next();
    }
  }
  const float end = first + static_cast<float>(piece.rows);
  moments_x.finish(i, end, sums.values + 3);
  moments_y.finish(i, end, sums.values + 3 + LaneSums<kOrder>::terms);
#pragma unroll
  for (float& value : sums.values) value = piece.owned > 0 ? value : 0;
  return sums;
}

/// How far a position may be from the one that weights were taken at, px. Displacements then differ by some
/// 1e-5 px from those of exact weights.
constexpr float longest_correction = 0.04f;
/// How far beyond a knot the spline's polynomials may be continued, px.
constexpr float longest_continuation = 0.25f;
/// Blocks of rows with weights of their own may not be shorter.
constexpr int least_rows_of_block = 16;

/// Most that the displacement changes from one row to the next.
template <int kOrder>
__device__ float steepness(const Placed<kOrder>& at, float radius) {
  const auto of = [radius](const Polynomial<float, polynomial_degree<kOrder>>& p) {
    if constexpr (kOrder == 2) return fabsf(p.y) + radius * (fabsf(p.xy) + 2 * fabsf(p.yy));
    return fabsf(p.y);
  };
  return fmaxf(of(at.displacement.x), of(at.displacement.y));
}

/// The fast variant as a whole. `takes` says whether it can do a subset at all; `add` sums up its pixels over
/// the warp, or returns false where the deformation is too large.
template <int kDegree, int kOrder>
struct Sliding {
  /// Where convergence is slow, the small errors of this variant add up.
  static constexpr int most_iterations = 8;

  __device__ static bool takes(const RefineFrame& frame, const PreparedSubset& s) {
    const int size = frame.deal.size;
    return s.right - s.left == size - 1 && s.bottom - s.top == size - 1 && !s.weighted;
  }

  __device__ static bool add(const RefineFrame& frame, const Placed<kOrder>& at, float& total) {
    const Deal& deal = frame.deal;
    const auto size = static_cast<float>(deal.size);
    const float steep = steepness(at, 0.5f * size);
    if (!(steep * least_rows_of_block <= 2 * longest_correction && steep * size <= 2 * longest_continuation))
      return false;
    const float blocks = ceilf(size * steep * (0.5f / longest_correction));
    const auto rows = static_cast<int>(ceilf(size / fmaxf(blocks, 1)));
    const int whole_passes = (deal.whole() + warp_size - 1) / warp_size, passes = whole_passes + deal.passes;
    total = 0;
    for (int pass = 0; pass < passes; ++pass) {
      const Piece piece =
          pass < whole_passes ? whole_column(deal, pass) : cut_column(deal, pass - whole_passes);
      const auto sums = slide<kDegree>(frame, at, piece, rows);
      total += LaneSums<kOrder>::Total::of(sums.values);
    }
    return true;
  }

 private:
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
