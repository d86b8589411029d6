#include "stereo/epipolar_check.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace dic::stereo {
namespace {

constexpr int kDegree = 4;
constexpr int kTerms = (kDegree + 1) * (kDegree + 2) / 2;
using Terms = Eigen::Matrix<double, kTerms, 1>;

/// Standard deviations from the common distance beyond which two cameras contradict each other.
constexpr double kLargest = 5;
/// The same, px, whatever the noise: a match that is so uncertain says nothing about a position.
constexpr double kLargestPx = 1;
/// Distance, px, up to which neighbours that are off by the same are believed: a calibration may be worse in
/// places, as in the corners of an image.
constexpr double kLargestCommonPx = 0.5;
/// Half the side of the square of such neighbours, nodes.
constexpr int kNeighbours = 4;
/// Factor from the median deviation of a normal distribution to its standard deviation.
constexpr double kFromMedian = 1.4826;

double median_of(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// x, y: from -1 to 1 over the grid.
Terms terms_at(double x, double y) {
  Terms terms;
  int k = 0;
  for (int degree = 0; degree <= kDegree; ++degree)
    for (int j = 0; j <= degree; ++j) terms[k++] = std::pow(x, degree - j) * std::pow(y, j);
  return terms;
}

struct Distance {
  std::size_t node;
  Terms at;
  double px, sigma;
};

std::vector<Distance> distances_of(const Field& field, const EpipolarDistances& all) {
  const Grid& grid = field.grid();
  std::vector<Distance> found;
  for (std::size_t k = 0; k < all.px.size(); ++k) {
    if (!has_values(field.status[k]) || std::isnan(all.px[k])) continue;
    const std::size_t column = k % grid.nx, row = k / grid.nx;
    const double x = 2.0 * static_cast<double>(column) / grid.nx - 1;
    const double y = 2.0 * static_cast<double>(row) / grid.ny - 1;
    found.push_back({k, terms_at(x, y), all.px[k], std::max(all.sigma[k], 1e-9)});
  }
  return found;
}

/// Part that is common to the distances: a polynomial fitted with weights that leave out what is far from it.
class CommonDistance {
 public:
  explicit CommonDistance(const std::vector<Distance>& distances) {
    constexpr std::size_t kFewPoints = 20 * kTerms;
    std::vector<double> values;
    for (const Distance& d : distances) values.push_back(d.px);
    coefficients_[0] = median_of(std::move(values));
    constexpr int kRounds = 8;
    for (int round = 0; round < kRounds && distances.size() >= kFewPoints; ++round) improve(distances);
  }
  double of(const Distance& d) const { return d.px - coefficients_.dot(d.at); }
  /// Robust standard deviation, px.
  double scatter(const std::vector<Distance>& distances) const {
    std::vector<double> deviations;
    for (const Distance& d : distances) deviations.push_back(std::abs(of(d)));
    return kFromMedian * median_of(std::move(deviations));
  }

 private:
  void improve(const std::vector<Distance>& distances) {
    const double limit = 3 * std::max(scatter(distances), 1e-6);
    Eigen::Matrix<double, kTerms, kTerms> normal = Eigen::Matrix<double, kTerms, kTerms>::Identity() * 1e-6;
    Terms right = Terms::Zero();
    for (const Distance& d : distances) {
      const double part = of(d) / limit;
      if (std::abs(part) >= 1) continue;
      const double weight = std::pow(1 - part * part, 2);  // Tukey's biweight
      normal += weight * d.at * d.at.transpose();
      right += weight * d.px * d.at;
    }
    coefficients_ = normal.ldlt().solve(right);
  }

  Terms coefficients_ = Terms::Zero();
};

/// Median of the distances from what is common to all, among the neighbours of a node.
class LocalMedian {
 public:
  LocalMedian(const Grid& grid, const std::vector<Distance>& distances, const CommonDistance& common)
      : grid_(grid),
        offset_(static_cast<std::size_t>(grid.nodes()), std::numeric_limits<double>::quiet_NaN()) {
    for (const Distance& d : distances) offset_[d.node] = common.of(d);
  }
  double around(std::size_t node) const {
    const int i = static_cast<int>(node % grid_.nx), j = static_cast<int>(node / grid_.nx);
    std::vector<double> near;
    for (int y = std::max(j - kNeighbours, 0); y <= std::min(j + kNeighbours, grid_.ny - 1); ++y)
      for (int x = std::max(i - kNeighbours, 0); x <= std::min(i + kNeighbours, grid_.nx - 1); ++x)
        if (const double value = offset_[static_cast<std::size_t>(y) * grid_.nx + x]; !std::isnan(value))
          near.push_back(value);
    constexpr std::size_t kEnough = 10;
    return near.size() < kEnough ? 0 : median_of(std::move(near));
  }

 private:
  const Grid& grid_;
  std::vector<double> offset_;
};

}  // namespace

EpipolarSummary mark_contradictions(Field& field, const EpipolarDistances& all) {
  const std::vector<Distance> distances = distances_of(field, all);
  std::vector<double> sizes;
  for (const Distance& d : distances) sizes.push_back(std::abs(d.px));
  const CommonDistance common(distances);
  std::vector<double> ratios;
  for (const Distance& d : distances) ratios.push_back(std::abs(common.of(d)) / d.sigma);
  const double scale = std::max(1.0, kFromMedian * median_of(std::move(ratios)));
  const LocalMedian local(field.grid(), distances, common);
  for (const Distance& d : distances) {
    const double offset = common.of(d), limit = std::min(kLargest * scale * d.sigma, kLargestPx);
    if (std::abs(offset) <= limit) continue;
    const double shared = local.around(d.node);
    if (std::abs(shared) > kLargestCommonPx || std::abs(offset - shared) > limit)
      field.status[d.node] = Status::epipolar;
  }
  return {median_of(std::move(sizes)), common.scatter(distances)};
}

}  // namespace dic::stereo
