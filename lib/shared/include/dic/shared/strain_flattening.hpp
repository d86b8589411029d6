#pragma once

#include <algorithm>
#include <cmath>
#include <dic/shared/field_options.hpp>
#include <dic/shared/host_device.hpp>
#include <dic/shared/strain_sigma.hpp>

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
  int distance;    ///< between neighbouring samples, nodes
  bool is_middle;  ///< the node is between the others; otherwise both are on one side
  float inward;    ///< direction of the others if both are on one side, 1 or -1
};

/// Expected error of a strain, and its deviation for a strain of deviation 1 whose windows are independent.
/// Both are sums over the axes: the sum of the sizes of two errors varies at most as much as one error with
/// the sum of their deviations.
struct Estimate {
  float error = 0, deviation = 0;
};

/// Factor of the square of an error. The samples are flattened as well, so that their derivatives are too
/// small.
constexpr float kFlattenedSamples = 1.5F;

/// Adds the error along one axis of a component whose weights have this variance about their middle. Sizes
/// are added: the second derivatives of elastic fields are opposite along both axes, but higher ones are not.
DIC_HOST_DEVICE inline void add_flattening(Estimate& sum, const Line& line, float middle, float variance,
                                           float here, float first, float second) {
  const auto d = static_cast<float>(line.distance);
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
  sum.deviation += std::sqrt(at_here * at_here + at_first * at_first + at_second * at_second);
}

/// Distances and sizes that the flattening of a window depends on.
struct Flattening {
  int half;          ///< of the window, nodes
  int distances[2];  ///< between the samples of the second derivative, nodes: far and near ones
  float subset = 0;  ///< variance of the weights of a subset along an axis, nodes^2; 0 if it can bend

  Flattening(const MeasuredSubsets& subsets, int step, int window) : half(window / 2) {
    const int far = std::max(window, (subsets.size + step / 2) / step);
    distances[0] = far, distances[1] = (far + 1) / 2;
    if (subsets.order < 2)
      subset = static_cast<float>(ErrorKernel(subsets).mean_square / (static_cast<double>(step) * step));
  }
};

/// Returns the samples along an axis. Without neighbours that have a strain, all are the node's own.
template <typename StrainAt>
DIC_HOST_DEVICE Line line_of(const Components& here, int distance, int di, int dj, const StrainAt& at) {
  const Components before = at(-di * distance, -dj * distance), after = at(di * distance, dj * distance);
  const bool has_before = !std::isnan(before.xx), has_after = !std::isnan(after.xx);
  if (has_before && has_after) return {here, before, after, distance, true, 0};
  const int side = has_after ? 1 : -1;
  const Components second = at(2 * side * di * distance, 2 * side * dj * distance);
  if ((!has_before && !has_after) || std::isnan(second.xx)) return {here, here, here, distance, true, 0};
  return {here, has_after ? after : before, second, distance, false, static_cast<float>(side)};
}

/// Returns the sigmas of a strain, with the error that its variation adds to the noise. Far samples tell it
/// with little noise, near ones what varies too fast for them. What noise alone may feign is subtracted.
/// at(di, dj): strain of a node.
template <typename StrainAt>
DIC_HOST_DEVICE Sigmas with_flattening(const Sigmas& noise, const Flattening& flattening, const Reach& reach,
                                       const StrainAt& at) {
  const AxisSpread x(reach.left, reach.right), y(reach.above, reach.below);
  const float mixed_x = 0.5F * (x.along + x.across), mixed_y = 0.5F * (y.along + y.across);
  const Components here = at(0, 0);
  Sigmas most = {0, 0, 0};  // squares of errors
  for (int k = 0; k < 2; ++k) {
    const float s = flattening.subset;
    const float by_noise = k == 0 ? 1.5F : 4.0F;  // variances that noise alone may feign
    const Line a = line_of(here, flattening.distances[k], 1, 0, at);
    const Line b = line_of(here, flattening.distances[k], 0, 1, at);
    Estimate xx, yy, xy;
    add_flattening(xx, a, x.middle, x.along + s, a.here.xx, a.first.xx, a.second.xx);
    add_flattening(xx, b, y.middle, y.across + s, b.here.xx, b.first.xx, b.second.xx);
    add_flattening(yy, a, x.middle, x.across + s, a.here.yy, a.first.yy, a.second.yy);
    add_flattening(yy, b, y.middle, y.along + s, b.here.yy, b.first.yy, b.second.yy);
    add_flattening(xy, a, x.middle, mixed_x + s, a.here.xy, a.first.xy, a.second.xy);
    add_flattening(xy, b, y.middle, mixed_y + s, b.here.xy, b.first.xy, b.second.xy);
    const auto raise = [&](float& square, const Estimate& of, float sigma) {
      const float error = of.error * of.error - by_noise * of.deviation * of.deviation * sigma * sigma;
      square = fmaxf(square, kFlattenedSamples * error);
    };
    raise(most.exx, xx, noise.exx), raise(most.eyy, yy, noise.eyy), raise(most.exy, xy, noise.exy);
  }
  return {std::sqrt(noise.exx * noise.exx + most.exx), std::sqrt(noise.eyy * noise.eyy + most.eyy),
          std::sqrt(noise.exy * noise.exy + most.exy)};
}

}  // namespace dic::strain
