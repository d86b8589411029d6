#include "stereo/epipolar_check.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
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

/// Robust standard deviation about 0.
double scatter_of(std::span<const double> values) {
  std::vector<double> sizes(values.size());
  std::ranges::transform(values, sizes.begin(), [](double value) { return std::abs(value); });
  return kFromMedian * median_of(std::move(sizes));
}

/// Products of powers of x and y, from -1 to 1 over the grid.
Terms terms_at(double x, double y) {
  Terms terms;
  terms[0] = 1;
  int k = 1;
  for (int degree = 1; degree <= kDegree; ++degree) {
    for (int j = 0; j < degree; ++j, ++k) terms[k] = terms[k - degree] * x;
    terms[k] = terms[k - degree - 1] * y;
    ++k;
  }
  return terms;
}

struct Distance {
  std::size_t node;
  double x, y;  ///< from -1 to 1 over the grid
  double px, sigma;
};

std::vector<Distance> distances_of(const Field& field, const EpipolarDistances& all) {
  const Grid& grid = field.grid();
  std::vector<Distance> found;
  found.reserve(all.px.size());
  for (std::size_t k = 0; k < all.px.size(); ++k) {
    if (!has_values(field.status[k]) || std::isnan(all.px[k])) continue;
    const std::size_t column = k % grid.nx, row = k / grid.nx;
    const double x = 2.0 * static_cast<double>(column) / grid.nx - 1;
    const double y = 2.0 * static_cast<double>(row) / grid.ny - 1;
    found.push_back({k, x, y, all.px[k], std::max(all.sigma[k], 1e-9)});
  }
  return found;
}

/// Some of the distances, enough for what is common to them. Multiples of the golden ratio spread them evenly
/// over rows and columns.
std::vector<Distance> some_of(const std::vector<Distance>& all) {
  constexpr std::size_t kMost = 5000;
  if (all.size() <= kMost) return all;
  std::vector<Distance> some;
  for (std::size_t n = 0; n < kMost; ++n) {
    const double multiple = static_cast<double>(n) * std::numbers::phi;
    const double part = multiple - std::floor(multiple);
    some.push_back(all[static_cast<std::size_t>(part * static_cast<double>(all.size()))]);
  }
  return some;
}

/// Part that is common to the distances: a polynomial fitted with weights that leave out what is far from it.
class CommonDistance {
 public:
  explicit CommonDistance(const std::vector<Distance>& distances) {
    constexpr std::size_t kFewPoints = 20 * kTerms;
    std::vector<double> values;
    for (const Distance& d : distances) values.push_back(d.px);
    coefficients_[0] = median_of(std::move(values));
    if (distances.size() < kFewPoints) return;
    std::vector<Terms> terms;
    for (const Distance& d : distances) terms.push_back(terms_at(d.x, d.y));
    constexpr int kRounds = 8;
    for (int round = 0; round < kRounds; ++round) improve(distances, terms);
  }
  double of(const Distance& d) const { return d.px - coefficients_.dot(terms_at(d.x, d.y)); }

 private:
  void improve(const std::vector<Distance>& distances, const std::vector<Terms>& terms) {
    std::vector<double> offsets;
    for (std::size_t n = 0; n < terms.size(); ++n)
      offsets.push_back(distances[n].px - coefficients_.dot(terms[n]));
    const double limit = 3 * std::max(scatter_of(offsets), 1e-6);
    Eigen::Matrix<double, kTerms, kTerms> normal = Eigen::Matrix<double, kTerms, kTerms>::Identity() * 1e-6;
    Terms right = Terms::Zero();
    for (std::size_t n = 0; n < terms.size(); ++n) {
      const double part = offsets[n] / limit;
      if (std::abs(part) >= 1) continue;
      const double weight = (1 - part * part) * (1 - part * part);  // Tukey's biweight
      normal.selfadjointView<Eigen::Lower>().rankUpdate(terms[n], weight);
      right += weight * distances[n].px * terms[n];
    }
    coefficients_ = normal.selfadjointView<Eigen::Lower>().ldlt().solve(right);
  }

  Terms coefficients_ = Terms::Zero();
};

/// Median of the distances from what is common to all, among the neighbours of a node.
class LocalMedian {
 public:
  /// offsets: of the distances.
  LocalMedian(const Grid& grid, const std::vector<Distance>& distances, std::span<const double> offsets)
      : grid_(grid),
        offset_(static_cast<std::size_t>(grid.nodes()), std::numeric_limits<double>::quiet_NaN()) {
    for (std::size_t n = 0; n < distances.size(); ++n) offset_[distances[n].node] = offsets[n];
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

EpipolarSummary mark_contradictions(Field& field, const EpipolarDistances& all, core::ThreadPool& pool) {
  const std::vector<Distance> distances = distances_of(field, all), some = some_of(distances);
  const CommonDistance common(some);
  std::vector<double> ratios;
  for (const Distance& d : some) ratios.push_back(common.of(d) / d.sigma);
  const double scale = std::max(1.0, scatter_of(ratios));
  std::vector<double> offsets(distances.size()), sizes(distances.size());
  core::for_each_index(pool, std::ssize(distances), [&](std::int64_t n) {
    offsets[n] = common.of(distances[n]), sizes[n] = std::abs(distances[n].px);
  });
  std::optional<LocalMedian> local;  // most frames need none
  for (std::size_t n = 0; n < distances.size(); ++n) {
    const double limit = std::min(kLargest * scale * distances[n].sigma, kLargestPx);
    if (std::abs(offsets[n]) <= limit) continue;
    if (!local) local.emplace(field.grid(), distances, offsets);
    const double shared = local->around(distances[n].node);
    if (std::abs(shared) > kLargestCommonPx || std::abs(offsets[n] - shared) > limit)
      field.status[distances[n].node] = Status::epipolar;
  }
  return {median_of(std::move(sizes)), scatter_of(offsets)};
}

}  // namespace dic::stereo
