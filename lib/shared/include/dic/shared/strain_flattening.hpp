#pragma once

#include <algorithm>
#include <cmath>
#include <dic/shared/field_options.hpp>
#include <dic/shared/host_device.hpp>
#include <dic/shared/strain_sigma.hpp>
#include <vector>

/// Error of strain that varies within the windows and subsets that measure it, for CPU and GPU
/// (docs/theory.md, "Uncertainty of strain").
namespace dic::strain {

/// Numbers of usable nodes in line on each side of a node, at most half a window.
struct Reach {
  int left, right, above, below;

  /// usable(di, dj): true if that node takes part in fits.
  template <typename Usable>
  DIC_HOST_DEVICE Reach(int half, const Usable& usable)
      : left(steps(half, -1, 0, usable)),
        right(steps(half, 1, 0, usable)),
        above(steps(half, 0, -1, usable)),
        below(steps(half, 0, 1, usable)) {}

 private:
  template <typename Usable>
  DIC_HOST_DEVICE static int steps(int half, int di, int dj, const Usable& usable) {
    int k = 0;
    while (k < half && usable((k + 1) * di, (k + 1) * dj)) ++k;
    return k;
  }
};

/// How a window averages the strain along an axis: the middle of its nodes, and the variance about it of the
/// weights of a slope along the axis and of one across it. Unit: nodes.
struct AxisSpread {
  float middle, along, across;

  DIC_HOST_DEVICE AxisSpread(int before, int after) : middle(0.5F * static_cast<float>(after - before)) {
    const auto n = static_cast<float>(before + after + 1);
    along = fmaxf((3 * n * n - 7) / 60, 0.0F);
    across = (n * n - 1) / 12;
  }
};

/// Strain components of a node; NaN if it has none.
struct Components {
  float xx, yy, xy;
};

DIC_HOST_DEVICE inline Components no_components() {
  const auto none = static_cast<float>(missing);
  return {none, none, none};
}

/// The strain at a node and at two others on a line with it, which tell its first and second derivative.
struct Line {
  Components here, first, second;
  bool is_middle;  ///< the node is between the others; otherwise both are on one side
  float inward;    ///< direction of the others if both are on one side, 1 or -1
};

/// Correlation of the noise of strains of complete windows, one and two distances apart.
struct NoiseCorrelation {
  float near, far;
};

/// Samples of the strain on a line with a node.
struct Samples {
  int distance;                    ///< between neighbouring samples, nodes
  NoiseCorrelation along, across;  ///< of slopes along the line and across it
};

/// Expected error of a strain, and its deviation for a strain of deviation 1. Both are sums over the axes:
/// the sum of the sizes of two errors varies at most as much as one error with the sum of their deviations.
struct Estimate {
  float error = 0, deviation = 0;
};

/// Factor of the square of an error. The samples are flattened as well, so that their derivatives are too
/// small.
constexpr float kFlattenedSamples = 1.5F;
/// Variances that noise alone may feign.
constexpr float kByNoise = 4;

/// Adds the error along one axis of a component whose weights have this variance about their middle. Sizes
/// are added: the second derivatives of elastic fields are opposite along both axes, but higher ones are not.
DIC_HOST_DEVICE inline void add_flattening(Estimate& sum, const Line& line, int distance,
                                           const NoiseCorrelation& noise, float middle, float variance,
                                           float here, float first, float second) {
  const auto d = static_cast<float>(distance);
  float at_here, at_first, at_second;  // weights of the samples
  if (line.is_middle) {
    const float slope = middle / (2 * d), bend = (variance + middle * middle) / (2 * d * d);
    at_here = -2 * bend, at_first = bend - slope, at_second = bend + slope;
  } else {
    // The measured value is that of the window's middle: a parabola through it and both others leads back to
    // the node.
    const float m = fminf(fmaxf(middle * line.inward, 0.0F), 0.75F * d);
    const float to_first = d - m, to_second = 2 * d - m, half = variance / d;
    at_here = 1 - 2 * d * d / (to_first * to_second) + variance / (to_first * to_second);
    at_first = 2 * m / to_first - half / to_first;
    at_second = -m / to_second + half / to_second;
  }
  sum.error += fabsf(at_here * here + at_first * first + at_second * second);
  const float to_second = line.is_middle ? noise.near : noise.far,
              between = line.is_middle ? noise.far : noise.near;
  const float square = at_here * at_here + at_first * at_first + at_second * at_second +
                       2 * (at_here * at_first * noise.near + at_here * at_second * to_second +
                            at_first * at_second * between);
  sum.deviation += std::sqrt(fmaxf(square, 0.0F));
}

/// Correlation of the noise of slopes of complete windows at different nodes; only ratios matter.
class SlopeCorrelation {
 public:
  SlopeCorrelation(const MeasuredSubsets& subsets, int step, int window, int most_lag) : window_(window) {
    const AxisKernel kernel(subsets, subsets.size);
    for (std::int64_t lag = 0; lag < std::int64_t{most_lag} + window; ++lag)
      products_.push_back(products_of(kernel, kernel, lag * step));
  }
  /// Correlation of slopes along the line that joins two nodes, `lag` nodes apart.
  float along(int lag) const { return ratio(slopes(lag).with(means(0)), slopes(0).with(means(0))); }
  float across(int lag) const { return ratio(means(lag).with(slopes(0)), means(0).with(slopes(0))); }

 private:
  static float ratio(double a, double b) { return static_cast<float>(a / b); }
  AxisProducts slopes(int lag) const {
    // Twelve times the sum of i (i + apart) over pairs of nodes of a row.
    return sum(lag,
               [](double pairs, double apart) { return pairs * (pairs * pairs - 1 - 3 * apart * apart); });
  }
  AxisProducts means(int lag) const {
    return sum(lag, [](double pairs, double) { return pairs; });
  }
  template <typename Weight>
  AxisProducts sum(int lag, const Weight& weight) const {
    AxisProducts out;
    for (int apart = 1 - window_; apart < window_; ++apart)
      out.add(weight(window_ - std::abs(apart), apart), products_[std::abs(lag + apart)]);
    return out;
  }

  int window_;
  std::vector<AxisProducts> products_;  ///< by the lag of the subsets, nodes
};

/// Distances and sizes that the flattening of a window depends on.
struct Flattening {
  int half;          ///< of the window, nodes
  int count = 0;     ///< of the samples
  Samples all[4];    ///< from far to near: each distance is half of the one before
  float subset = 0;  ///< variance of the weights of a subset along an axis, nodes^2; 0 if it can bend

  Flattening(const MeasuredSubsets& subsets, int step, int window) : half(window / 2) {
    // Nearer subsets share most of their pixels and of their noise: what differs is small and badly known.
    const int nearest = std::max(2, (subsets.size + 2 * step - 1) / (2 * step));
    int distance = std::max(window, (subsets.size + step / 2) / step);
    const SlopeCorrelation noise(subsets, step, window, 2 * distance);
    const auto at = [&](const auto& of, int d) -> NoiseCorrelation { return {of(d), of(2 * d)}; };
    for (Samples& samples : all) {
      if (count > 0 && distance == all[count - 1].distance) break;
      samples = {distance, at([&](int lag) { return noise.along(lag); }, distance),
                 at([&](int lag) { return noise.across(lag); }, distance)};
      ++count;
      distance = std::max(nearest, (distance + 1) / 2);
    }
    if (subsets.order < 2)
      subset = static_cast<float>(ErrorKernel(subsets).mean_square / (static_cast<double>(step) * step));
  }
};

/// Returns the samples along an axis. Without neighbours that have a strain, all are the node's own.
template <typename StrainAt>
DIC_HOST_DEVICE Line line_of(const Components& here, int distance, int di, int dj, const StrainAt& at) {
  const Components before = at(-di * distance, -dj * distance), after = at(di * distance, dj * distance);
  const bool has_before = !std::isnan(before.xx), has_after = !std::isnan(after.xx);
  if (has_before && has_after) return {here, before, after, true, 0};
  const int side = has_after ? 1 : -1;
  const Components second = at(2 * side * di * distance, 2 * side * dj * distance);
  if ((!has_before && !has_after) || std::isnan(second.xx)) return {here, here, here, true, 0};
  return {here, has_after ? after : before, second, false, static_cast<float>(side)};
}

DIC_HOST_DEVICE inline Squares no_squares() {
  const auto none = static_cast<float>(missing);
  return {none, none, none};
}

/// Returns what the variation of a strain adds to the squares of its sigmas. Far samples tell it with little
/// noise, near ones what varies too fast for them. What noise alone may feign is subtracted. at(di, dj):
/// strain of a node.
template <typename StrainAt>
DIC_HOST_DEVICE Squares flattening_of(const Sigmas& noise, const Flattening& flattening, const Reach& reach,
                                      const StrainAt& at) {
  const AxisSpread x(reach.left, reach.right), y(reach.above, reach.below);
  const float mixed_x = 0.5F * (x.along + x.across), mixed_y = 0.5F * (y.along + y.across);
  const float s = flattening.subset;
  const Components here = at(0, 0);
  Squares most = {0, 0, 0};
  for (int k = 0; k < flattening.count; ++k) {
    const Samples& of = flattening.all[k];
    const NoiseCorrelation mixed{0.5F * (of.along.near + of.across.near),
                                 0.5F * (of.along.far + of.across.far)};
    const int d = of.distance;
    const Line a = line_of(here, d, 1, 0, at), b = line_of(here, d, 0, 1, at);
    Estimate xx, yy, xy;
    add_flattening(xx, a, d, of.along, x.middle, x.along + s, a.here.xx, a.first.xx, a.second.xx);
    add_flattening(xx, b, d, of.across, y.middle, y.across + s, b.here.xx, b.first.xx, b.second.xx);
    add_flattening(yy, a, d, of.across, x.middle, x.across + s, a.here.yy, a.first.yy, a.second.yy);
    add_flattening(yy, b, d, of.along, y.middle, y.along + s, b.here.yy, b.first.yy, b.second.yy);
    add_flattening(xy, a, d, mixed, x.middle, mixed_x + s, a.here.xy, a.first.xy, a.second.xy);
    add_flattening(xy, b, d, mixed, y.middle, mixed_y + s, b.here.xy, b.first.xy, b.second.xy);
    const auto raise = [&](float& square, const Estimate& of_line, float sigma) {
      const float error =
          of_line.error * of_line.error - kByNoise * of_line.deviation * of_line.deviation * sigma * sigma;
      square = fmaxf(square, kFlattenedSamples * error);
    };
    raise(most.xx, xx, noise.exx), raise(most.yy, yy, noise.eyy), raise(most.xy, xy, noise.exy);
  }
  return most;
}

/// Returns the sigmas of a strain, with the error that its variation adds to the noise: its own estimate, or
/// the mean of those around it if that is larger, because an estimate changes its sign where the error may
/// not. squares_at(di, dj): flattening_of() a node, NaN if it has no strain.
template <typename SquaresAt>
DIC_HOST_DEVICE Sigmas with_flattening(const Sigmas& noise, const Flattening& flattening,
                                       const SquaresAt& squares_at) {
  const int side = flattening.half < 4 ? 3 : flattening.half / 2 * 2 + 1, offsets = variance_offsets(side);
  const Squares own = squares_at(0, 0);
  Squares sum = {0, 0, 0};
  float count = 0;
  for (int row = 0; row < offsets; ++row)
    for (int column = 0; column < offsets; ++column) {
      const Squares one = squares_at(variance_offset(side, column), variance_offset(side, row));
      if (std::isnan(one.xx)) continue;
      sum = {sum.xx + one.xx, sum.yy + one.yy, sum.xy + one.xy};
      count += 1;
    }
  const auto total = [count](float sigma, float mine, float all) {
    return std::sqrt(sigma * sigma + fmaxf(mine, all / count));
  };
  return {total(noise.exx, own.xx, sum.xx), total(noise.eyy, own.yy, sum.yy),
          total(noise.exy, own.xy, sum.xy)};
}

}  // namespace dic::strain
