#include "fields/scatter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <dic/shared/strain_sigma.hpp>
#include <utility>
#include <vector>

namespace dic::fields {
namespace {

constexpr int kReach = 2;  ///< nodes of a difference to both sides of its middle
constexpr std::array<double, 2 * kReach + 1> kFourth{1, -4, 6, -4, 1};  ///< weights of the difference
/// Distances of the nodes, in sides of a subset. Subsets a whole side apart share no pixels: their scatter is
/// that of the displacements, whatever the spectrum of the errors. Close ones tell whether a field does it.
constexpr double kApart = 1, kClose = 1.0 / 3;
constexpr double kPlaces = 2000;  ///< approximate number of places that are looked at
constexpr double kLeastPlaces = 200;
/// Excess that chance explains, times sqrt(n), n being the area in subsets: the median of n normal values
/// varies by 1.2 / sqrt(n), and differences share nodes.
constexpr double kByChance = 2;
constexpr double kMedianOfNormal = 0.6745;  ///< median of the absolute values of a normal distribution

/// Variance of a fourth difference along an axis, for displacements of variance 1. distance: px.
double variance_of_difference(const MeasuredSubsets& subsets, std::int64_t distance) {
  const strain::AxisKernel kernel(subsets, subsets.size);
  const strain::AxisProducts same = strain::products_of(kernel, kernel, 0);
  double sum = 0;
  for (int a = 0; a <= 2 * kReach; ++a)
    for (int b = 0; b <= 2 * kReach; ++b)
      sum += kFourth[a] * kFourth[b] *
             strain::products_of(kernel, kernel, std::abs(a - b) * distance).with(same);
  return sum / same.with(same);
}

/// A component of the displacement.
struct Component {
  const Field& field;
  const NodeValues<double>& values;
  const NodeValues<float>& sigmas;
};

/// Square of the fourth difference around a node over that of independent errors; negative where a point is
/// not measured. stride: from node to node.
double normalized_square(const Component& of, std::int64_t node, std::int64_t stride) {
  double difference = 0, variance = 0;
  for (int k = 0; k <= 2 * kReach; ++k) {
    const auto at = static_cast<std::size_t>(node + (k - kReach) * stride);
    if (of.field.status[at] != Status::ok) return -1;
    const double weight = kFourth[k] * kFourth[k], sigma = of.sigmas[at];
    difference += kFourth[k] * of.values[at];
    variance += weight * sigma * sigma;
  }
  constexpr double kWeights = 70;  // sum of the squared weights
  return kWeights * difference * difference / variance;
}

/// Squares of differences along rows or columns, and the area in subsets that they tell of.
struct Squares {
  std::vector<double> values;
  double area = 0;

  void add(const Squares& other) {
    values.insert(values.end(), other.values.begin(), other.values.end());
    area += other.area;
  }
};

/// Looks at differences along rows, or columns. lag: distance of their nodes.
Squares squares_along(const Component& of, const MeasuredSubsets& subsets, std::int64_t lag, bool rows) {
  const Grid& grid = of.field.grid();
  const std::int64_t nx = grid.nx, ny = grid.ny;
  const std::int64_t margin_x = rows ? kReach * lag : 0, margin_y = rows ? 0 : kReach * lag;
  const auto width = static_cast<double>(std::max<std::int64_t>(0, nx - 2 * margin_x)),
             height = static_cast<double>(std::max<std::int64_t>(0, ny - 2 * margin_y));
  const auto apart = std::max<std::int64_t>(1, std::llround(std::sqrt(width * height / kPlaces)));
  Squares out;
  for (std::int64_t j = margin_y; j < ny - margin_y; j += apart)
    for (std::int64_t i = margin_x; i < nx - margin_x; i += apart)
      if (const double square = normalized_square(of, j * nx + i, rows ? lag : lag * nx); square >= 0)
        out.values.push_back(square);
  const double side = static_cast<double>(apart) * grid.step / subsets.size;
  out.area = static_cast<double>(out.values.size()) * std::min(side * side, 1.0);
  return out;
}

/// Share of an excess of the ratio that chance explains.
double by_chance(double area) { return kByChance / std::sqrt(area); }

/// True if the ratio_of() these squares is surely no larger than chance explains. Counting is faster than
/// finding the median, which few fields need.
bool is_by_chance(const Squares& squares, double variance) {
  const double most = kMedianOfNormal * (1 + by_chance(squares.area));
  const double limit = 0.999999 * most * most * variance;
  const auto below = std::ranges::count_if(squares.values, [&](double square) { return square < limit; });
  return 2 * below > std::ssize(squares.values);
}

/// Observed over predicted scatter; 1 if there are too few places. variance: see variance_of_difference().
double ratio_of(Squares squares, double variance) {
  if (static_cast<double>(squares.values.size()) < kLeastPlaces) return 1;
  const auto middle = squares.values.begin() + std::ssize(squares.values) / 2;
  std::ranges::nth_element(squares.values, middle);
  return std::sqrt(*middle / variance) / kMedianOfNormal;
}

/// The ratio, of which the part that chance explains is taken away (Breiman's garrote), at least 1.
double beyond_chance(double ratio, double area) {
  const double excess = ratio - 1, chance = by_chance(area);
  return excess > chance ? 1 + excess - chance * chance / excess : 1;
}

double excess(const Component& of, const MeasuredSubsets& subsets) {
  const int step = of.field.grid().step;
  const auto nodes = [&](double sides) {
    return std::max<std::int64_t>(1, std::llround(sides * subsets.size / step));
  };
  const std::int64_t apart = nodes(kApart), close = nodes(kClose);
  Squares all = squares_along(of, subsets, apart, true);
  all.add(squares_along(of, subsets, apart, false));
  const double area = all.area, variance_apart = variance_of_difference(subsets, apart * step);
  if (is_by_chance(all, variance_apart)) return 1;
  double least = beyond_chance(ratio_of(std::move(all), variance_apart), area);
  if (least == 1) return 1;
  const double variance = variance_of_difference(subsets, close * step);
  for (const bool rows : {true, false})
    least = std::min(least, ratio_of(squares_along(of, subsets, close, rows), variance));
  return std::max(least, 1.0);
}

}  // namespace

ScatterRatios excess_scatter(const Field& field, const MeasuredSubsets& subsets) {
  return {excess({field, field.u, field.sigma_u}, subsets), excess({field, field.v, field.sigma_v}, subsets)};
}

}  // namespace dic::fields
