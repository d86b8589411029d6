#pragma once

#include <cstdint>
#include <dic/shared/node_window.hpp>
#include <dic/shared/small_matrix.hpp>
#include <dic/shared/status.hpp>

/// Corrections and derivatives of a match that follow from its neighbours, for CPU and GPU: each step is done
/// at every node, in any order, before the next one begins. See subtract_bends() for what they do.
namespace dic::stereo {

/// Parts of a subtracted bias that may remain, near a complete window and far from one.
constexpr double kRemainingBias = 0.1, kRemainingBiasAtEdge = 0.6;
/// The same for the choice of the order, which must not trust the polynomials where the surface bends most.
constexpr double kDoubtfulBend = 0.25;
/// Noise that order 2 adds to that of order 1, in units of the latter (1.8^2 = 1 + 1.5^2).
constexpr double kNoiseOfOrder2 = 1.5;
/// Largest side of a window of nodes.
constexpr int kMostBendWindow = 41;

/// Second derivatives of the displacement, px per node^2.
struct Bends {
  double uii, uij, ujj, vii, vij, vjj;
};

/// Sums of displacements over the row of a window: plain, with the distance from its centre, with its square
/// less the mean square.
struct RowSums {
  double u, u_line, u_square, v, v_line, v_square;
};

/// Variances that the windows of nodes leave of the noise of a match, see BendFilter.
struct BendNoise {
  double narrow_variance, wide_variance, difference_variance;
};

/// A match at all nodes, and memory for the steps.
struct BendJob {
  NodeGrid grid;
  int narrow, wide;  ///< sides of the windows, nodes
  int match_order;   ///< order of all subsets, unless `order` tells that of each
  BendNoise noise;
  // The match: corrected in place.
  double *u, *v;
  float *sigma_u, *sigma_v;
  const Status* status;
  const std::uint8_t* order;  ///< null: match_order
  const float* responses;     ///< [node][12], see BendResponse: column by column
  // Results.
  float* maps;          ///< [node][4], derivative of the current by the reference image point, row by row
  std::uint8_t* known;  ///< 1 for each node whose derivatives are known
  std::uint8_t* bent;   ///< 1 where order 2 would be better; may be null
  // Memory of the steps.
  std::uint8_t *usable, *row_is_complete;
  RowSums* rows;
  Bends *narrow_bends, *wide_bends;
  std::int32_t *narrow_source, *wide_source;  ///< node whose bends a node takes; -1: its own or none
  std::int32_t *other_narrow, *other_wide;    ///< for the steps of the spreading
  double *bias_u, *bias_v;
  float *difference_u, *difference_v;  ///< of the biases of both windows in units of the noise; or NaN
  float *row_squares, *row_counts;     ///< sums over rows of their squares

  DIC_HOST_DEVICE bool is_corrected(std::int64_t k) const {
    return known[k] && (order ? order[k] : match_order) == 1;
  }
  DIC_HOST_DEVICE Matrix2 map(std::int64_t k) const {
    return matrix2(maps[4 * k], maps[4 * k + 1], maps[4 * k + 2], maps[4 * k + 3]);
  }
};

struct FindUsable {
  BendJob job;
  DIC_HOST_DEVICE void operator()(std::int64_t k) const { job.usable[k] = job.status[k] == Status::ok; }
};

/// Sums over the rows of windows.
struct SumRows {
  BendJob job;
  int window;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    const int half = window / 2, i = job.grid.column(k);
    job.row_is_complete[k] = 0;
    if (i < half || i + half >= job.grid.nx) return;
    for (int d = -half; d <= half; ++d)
      if (!job.usable[k + d]) return;
    job.row_is_complete[k] = 1;
    const double mean_square = (double(window) * window - 1) / 12;
    RowSums sums = {0, 0, 0, 0, 0, 0};
    for (int d = -half; d <= half; ++d) {
      const double u = job.u[k + d], v = job.v[k + d], square = double(d) * d - mean_square;
      sums.u += u, sums.u_line += d * u, sums.u_square += square * u;
      sums.v += v, sums.v_line += d * v, sums.v_square += square * v;
    }
    job.rows[k] = sums;
  }
};

/// Polynomials at nodes whose windows are complete. There the terms of the polynomial are orthogonal, but for
/// the mean, and products of functions of the row and of the column, so that each costs two sums over a side
/// of the window instead of one over its area.
struct FitComplete {
  BendJob job;
  bool is_narrow;  ///< the narrow window, which gives the map too

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    const int window = is_narrow ? job.narrow : job.wide, half = window / 2, j = job.grid.row(k);
    std::int32_t* const source = is_narrow ? job.narrow_source : job.wide_source;
    source[k] = -1;
    if (is_narrow) {
      for (int c = 0; c < 4; ++c) job.maps[4 * k + c] = c % 3 == 0 ? 1.0F : 0.0F;
      job.known[k] = 0;
    }
    if (j < half || j + half >= job.grid.ny) return;
    for (int d = -half; d <= half; ++d)
      if (!job.row_is_complete[k + std::int64_t{d} * job.grid.nx]) return;
    source[k] = static_cast<std::int32_t>(k);
    const double n = window, mean_square = (n * n - 1) / 12;
    Bends bends = {0, 0, 0, 0, 0, 0};
    double u_line = 0, u_down = 0, v_line = 0, v_down = 0;
    for (int d = -half; d <= half; ++d) {
      const RowSums& row = job.rows[k + std::int64_t{d} * job.grid.nx];
      const double square = double(d) * d - mean_square;
      u_line += row.u_line, u_down += d * row.u, v_line += row.v_line, v_down += d * row.v;
      bends.uii += row.u_square, bends.uij += d * row.u_line, bends.ujj += square * row.u;
      bends.vii += row.v_square, bends.vij += d * row.v_line, bends.vjj += square * row.v;
    }
    // Sums of d^2 and of (d^2 - mean_square)^2 over a row of n nodes.
    const double squares = n * (n * n - 1) / 12, fourths = squares * (n * n - 4) / 15;
    const double of_bend = 2 / (n * fourths), of_mixed = 1 / (squares * squares);
    bends.uii *= of_bend, bends.ujj *= of_bend, bends.vii *= of_bend, bends.vjj *= of_bend;
    bends.uij *= of_mixed, bends.vij *= of_mixed;
    (is_narrow ? job.narrow_bends : job.wide_bends)[k] = bends;
    if (!is_narrow) return;
    const double of_line = 1 / (n * squares * job.grid.step);
    store_map(k, u_line * of_line, u_down * of_line, v_line * of_line, v_down * of_line);
  }

  /// Slopes per px.
  DIC_HOST_DEVICE void store_map(std::int64_t k, double ux, double uy, double vx, double vy) const {
    float* const map = job.maps + 4 * k;
    map[0] = static_cast<float>(1 + ux), map[1] = static_cast<float>(uy);
    map[2] = static_cast<float>(vx), map[3] = static_cast<float>(1 + vy);
    job.known[k] = 1;
  }
};

/// Sums over the nodes of an incomplete window, of x^a y^b and of displacements times x^a y^b.
struct WindowMoments {
  double of[5][5], u[3][3], v[3][3];  ///< a + b at most 4, at most 2

  DIC_HOST_DEVICE WindowMoments() {
    for (int a = 0; a < 5; ++a)
      for (int b = 0; b < 5; ++b) of[a][b] = 0;
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) u[a][b] = v[a][b] = 0;
  }
  /// Adds a row, of which sums[a] = sum of x^a and so on.
  DIC_HOST_DEVICE void add_row(double y, const double (&sums)[5], const double (&of_u)[3],
                               const double (&of_v)[3]) {
    double power = 1;
    for (int b = 0; b < 5; ++b, power *= y)
      for (int a = 0; a + b < 5; ++a) {
        of[a][b] += power * sums[a];
        if (a + b < 3) u[a][b] += power * of_u[a], v[a][b] += power * of_v[a];
      }
  }
};

/// Polynomials at usable nodes whose narrow windows are not complete, if at least half of a window is there.
struct FitPartial {
  BendJob job;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    if (!job.usable[k] || job.known[k]) return;
    // Distances in halves of the window, so that all terms are of one size.
    const int half = job.narrow / 2;
    const double unit = 1.0 / half;
    const WindowMoments moments = moments_around(k, unit);
    if (2 * moments.of[0][0] < job.narrow * job.narrow) return;
    // The terms 1, x, y, x^2 / 2, x y, y^2 / 2.
    constexpr int kX[6] = {0, 1, 0, 2, 1, 0}, kY[6] = {0, 0, 1, 0, 1, 2};
    constexpr double kFactor[6] = {1, 1, 1, 0.5, 1, 0.5};
    auto normal = SmallMatrix<6, 6>::zero();
    SmallMatrix<6, 2> right;
    for (int i = 0; i < 6; ++i) {
      for (int j = 0; j <= i; ++j)
        normal(i, j) = kFactor[i] * kFactor[j] * moments.of[kX[i] + kX[j]][kY[i] + kY[j]];
      right(i, 0) = kFactor[i] * moments.u[kX[i]][kY[i]], right(i, 1) = kFactor[i] * moments.v[kX[i]][kY[i]];
    }
    const Cholesky<6> factor(normal);
    constexpr double kLeastPivot = 1e-3;  // a complete window has at least 0.5, nodes in two rows have 0
    if (!(factor.least_pivot() > kLeastPivot)) return;
    const SmallMatrix<6, 2> fit = factor.solve(right);
    const double square = unit * unit, per_px = unit / job.grid.step;
    job.narrow_bends[k] = {fit(3, 0) * square, fit(4, 0) * square, fit(5, 0) * square,
                           fit(3, 1) * square, fit(4, 1) * square, fit(5, 1) * square};
    FitComplete{job, true}.store_map(k, fit(1, 0) * per_px, fit(2, 0) * per_px, fit(1, 1) * per_px,
                                     fit(2, 1) * per_px);
  }

 private:
  /// Displacements are relative to that of the node.
  DIC_HOST_DEVICE WindowMoments moments_around(std::int64_t k, double unit) const {
    const ConnectedNodes<kMostBendWindow> nodes(job.grid, job.usable, k, job.narrow);
    const double u0 = job.u[k], v0 = job.v[k];
    WindowMoments moments;
    double sums[5] = {}, of_u[3] = {}, of_v[3] = {};
    nodes.for_each_row(
        [&](int di, int, std::int64_t node) {
          const double x = di * unit, xx = x * x, u = job.u[node] - u0, v = job.v[node] - v0;
          sums[0] += 1, sums[1] += x, sums[2] += xx, sums[3] += xx * x, sums[4] += xx * xx;
          of_u[0] += u, of_u[1] += x * u, of_u[2] += xx * u;
          of_v[0] += v, of_v[1] += x * v, of_v[2] += xx * v;
        },
        [&](int dj) {
          moments.add_row(dj * unit, sums, of_u, of_v);
          for (double& sum : sums) sum = 0;
          for (int a = 0; a < 3; ++a) of_u[a] = of_v[a] = 0;
        });
    return moments;
  }
};

/// One step to the neighbours: gives nodes with an incomplete window the second derivatives of the nearest
/// complete one, since those of a window that lies on one side of its node are very noisy. Among equally near
/// ones, that on the left counts first, then the right one, then the upper one.
struct SpreadBends {
  NodeGrid grid;
  const std::uint8_t* takes;  ///< 1 for each node that takes and passes on
  const std::int32_t* from;
  std::int32_t* to;

  /// True if the node has found its source now.
  DIC_HOST_DEVICE bool operator()(std::int64_t k) const {
    std::int32_t source = from[k];
    const bool looks = source < 0 && takes[k];
    if (looks) {
      const int i = grid.column(k), j = grid.row(k);
      if (i > 0) source = from[k - 1];
      if (source < 0 && i + 1 < grid.nx) source = from[k + 1];
      if (source < 0 && j > 0) source = from[k - grid.nx];
      if (source < 0 && j + 1 < grid.ny) source = from[k + grid.nx];
    }
    to[k] = source;
    return looks && source >= 0;
  }
};

/// The bias of a match for second derivatives per px^2. The response is that of motions within the reference:
/// the motion is taken back there, and the answer brought forth.
DIC_HOST_DEVICE inline Vector2 bias_of(const Bends& b, const Matrix2& map, const float* response) {
  const SmallMatrix<2, 3> bends = {{{b.uii, b.uij, b.ujj}, {b.vii, b.vij, b.vjj}}};
  const SmallMatrix<2, 3> inside = inverse(map) * bends;
  Vector2 answer = vector2(0, 0);
  for (int c = 0; c < 6; ++c)
    for (int row = 0; row < 2; ++row) answer[row] += double(response[2 * c + row]) * inside(c / 3, c % 3);
  return map * answer;
}

/// The biases of the narrow windows, and how far those of the wide ones differ from them.
struct FindBias {
  BendJob job;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    job.difference_u[k] = job.difference_v[k] = std::numeric_limits<float>::quiet_NaN();
    if (!job.is_corrected(k)) return;
    const Matrix2 map = job.map(k);
    const double per_square_px = 1 / (double(job.grid.step) * job.grid.step);
    const std::int32_t narrow = job.narrow_source[k], wide = job.wide_source[k];
    const Vector2 bias =
        per_square_px * bias_of(job.narrow_bends[narrow < 0 ? k : narrow], map, job.responses + 12 * k);
    job.bias_u[k] = bias[0], job.bias_v[k] = bias[1];
    if (narrow < 0 || wide < 0) return;
    const Vector2 smooth = per_square_px * bias_of(job.wide_bends[wide], map, job.responses + 12 * k);
    job.difference_u[k] = static_cast<float>((bias[0] - smooth[0]) / double(job.sigma_u[k]));
    job.difference_v[k] = static_cast<float>((bias[1] - smooth[1]) / double(job.sigma_v[k]));
  }
};

DIC_HOST_DEVICE inline bool are_finite(float a, float b) { return a - a == 0 && b - b == 0; }

/// Sums of the squared differences over rows of narrow windows.
struct SumDifferences {
  BendJob job;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    const int half = job.narrow / 2, i = job.grid.column(k);
    float squares = 0, count = 0;
    const int first = i < half ? -i : -half, last = job.grid.nx - 1 - i < half ? job.grid.nx - 1 - i : half;
    for (int d = first; d <= last; ++d) {
      const float u = job.difference_u[k + d], v = job.difference_v[k + d];
      if (are_finite(u, v)) squares += u * u + v * v, count += 2;
    }
    job.row_squares[k] = squares, job.row_counts[k] = count;
  }
};

/// Subtracts the biases.
struct SubtractBias {
  BendJob job;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    if (job.bent) job.bent[k] = 0;
    if (!job.is_corrected(k)) return;
    const float du = job.difference_u[k], dv = job.difference_v[k];
    const double part = are_finite(du, dv) ? narrow_share(k) : 1;
    const bool has_bends = job.narrow_source[k] >= 0;
    const double su = job.sigma_u[k], sv = job.sigma_v[k];
    const BendNoise& noise = job.noise;
    const double gain = std::sqrt(noise.wide_variance + part * (noise.narrow_variance - noise.wide_variance));
    double bu = job.bias_u[k], bv = job.bias_v[k];
    if (job.bent)
      job.bent[k] = (has_bends ? kDoubtfulBend : kRemainingBiasAtEdge) * std::sqrt(bu * bu + bv * bv) >
                    kNoiseOfOrder2 * std::sqrt(su * su + sv * sv);
    if (part < 1) bu -= (1 - part) * du * su, bv -= (1 - part) * dv * sv;
    const double rest = has_bends ? kRemainingBias : kRemainingBiasAtEdge;
    job.u[k] -= bu, job.v[k] -= bv;
    job.sigma_u[k] = static_cast<float>(std::sqrt(su * gain * su * gain + rest * bu * rest * bu));
    job.sigma_v[k] = static_cast<float>(std::sqrt(sv * gain * sv * gain + rest * bv * rest * bv));
  }

 private:
  /// Share of the narrow window's polynomial, 0 to 1: as far as both windows differ by more than their noise
  /// explains.
  DIC_HOST_DEVICE double narrow_share(std::int64_t k) const {
    constexpr double kMuch = 2;  // of the expected square, since the mean over a window is noisy too
    const int half = job.narrow / 2, j = job.grid.row(k);
    const int first = j < half ? -j : -half, last = job.grid.ny - 1 - j < half ? job.grid.ny - 1 - j : half;
    double squares = 0, count = 0;
    for (int d = first; d <= last; ++d) {
      const std::int64_t row = k + std::int64_t{d} * job.grid.nx;
      squares += job.row_squares[row], count += job.row_counts[row];
    }
    const double share = 1 - kMuch * job.noise.difference_variance * count / squares;
    return share > 0 ? share : 0;
  }
};

}  // namespace dic::stereo
