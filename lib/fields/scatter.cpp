#include "fields/scatter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <dic/shared/strain_sigma.hpp>
#include <vector>

namespace dic::fields {
namespace {

constexpr int kReach = 2;  ///< nodes of a difference to both sides of its middle
constexpr std::array<double, 2 * kReach + 1> kFourth{1, -4, 6, -4, 1};  ///< weights of the difference
constexpr double kLag =
    1.0 / 6;  ///< distance of the nodes, in sides of a subset; less tells edges of subsets only
constexpr double kPlaces = 2000;  ///< approximate number of places that are looked at
constexpr double kLeastPlaces = 200;
/// Ratios up to kUsual + kBySampling / sqrt(places) are those of correct sigmas: the median of normal values
/// varies by 1.2 / sqrt(places), and the pixels that subsets share are not exactly of even texture.
constexpr double kUsual = 1.08, kBySampling = 2;
constexpr double kMedianOfNormal = 0.6745;  ///< median of the absolute values of a normal distribution

/// Variance of a fourth difference along an axis, for displacements of variance 1.
double variance_of_difference(const MeasuredSubsets& subsets, int distance) {
  const strain::AxisKernel kernel(subsets, subsets.size);
  const auto covariance = [&](std::int64_t nodes) {
    return strain::products_of(kernel, kernel, nodes * distance).with(strain::products_of(kernel, kernel, 0));
  };
  double sum = 0;
  for (int a = 0; a <= 2 * kReach; ++a)
    for (int b = 0; b <= 2 * kReach; ++b) sum += kFourth[a] * kFourth[b] * covariance(std::abs(a - b));
  return sum / covariance(0);
}

/// Normalized fourth differences of one component along one axis.
class Differences {
 public:
  Differences(const Field& field, const NodeValues<double>& values, const NodeValues<float>& sigmas)
      : field_(field), values_(values), sigmas_(sigmas) {}

  /// Adds the difference around a node, if all its points are measured. stride: from node to node.
  void add(std::int64_t node, std::int64_t stride) {
    double difference = 0, variance = 0, weights = 0;
    for (int k = 0; k <= 2 * kReach; ++k) {
      const auto at = static_cast<std::size_t>(node + (k - kReach) * stride);
      if (field_.status[at] != Status::ok) return;
      const double weight = kFourth[k] * kFourth[k], sigma = sigmas_[at];
      difference += kFourth[k] * values_[at];
      variance += weight * sigma * sigma;
      weights += weight;
    }
    squares_.push_back(difference * difference * weights / variance);
  }

  /// Observed over predicted scatter, 1 if it is not surely larger.
  double excess(double variance) {
    const auto places = static_cast<double>(squares_.size());
    if (places < kLeastPlaces) return 1;
    const auto middle = squares_.begin() + std::ssize(squares_) / 2;
    std::ranges::nth_element(squares_, middle);
    const double ratio = std::sqrt(*middle / variance) / kMedianOfNormal;
    return ratio > kUsual + kBySampling / std::sqrt(places) ? ratio : 1;
  }

 private:
  const Field& field_;
  const NodeValues<double>& values_;
  const NodeValues<float>& sigmas_;
  std::vector<double> squares_;
};

}  // namespace

ScatterRatios excess_scatter(const Field& field, const MeasuredSubsets& subsets) {
  const Grid& grid = field.grid();
  const std::int64_t nx = grid.nx, ny = grid.ny;
  const auto lag = std::max<std::int64_t>(1, std::llround(kLag * subsets.size / grid.step)),
             reach = kReach * lag;
  const auto apart =
      std::max<std::int64_t>(1, std::llround(std::sqrt(static_cast<double>(nx * ny) / kPlaces)));
  Differences u_along_x(field, field.u, field.sigma_u), u_along_y = u_along_x;
  Differences v_along_x(field, field.v, field.sigma_v), v_along_y = v_along_x;
  for (std::int64_t j = 0; j < ny; j += apart)
    for (std::int64_t i = 0; i < nx; i += apart) {
      const std::int64_t node = j * nx + i;
      if (i >= reach && i + reach < nx) u_along_x.add(node, lag), v_along_x.add(node, lag);
      if (j >= reach && j + reach < ny) u_along_y.add(node, lag * nx), v_along_y.add(node, lag * nx);
    }
  const double variance = variance_of_difference(subsets, static_cast<int>(lag) * grid.step);
  return {std::min(u_along_x.excess(variance), u_along_y.excess(variance)),
          std::min(v_along_x.excess(variance), v_along_y.excess(variance))};
}

}  // namespace dic::fields
