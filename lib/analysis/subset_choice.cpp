#include "analysis/subset_choice.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace dic::analysis {
namespace {

constexpr int kSmallest = 11, kLargest = 101;  ///< range of subsets, px, odd
constexpr std::int64_t kSamples = 500;         ///< number of points that are examined
constexpr double kShare = 0.9;                 ///< share of these points that must be as good as demanded

/// Some points, spread evenly over all.
struct Sample {
  std::vector<int> x, y;

  explicit Sample(const fields::Points& points) {
    const std::int64_t count = std::min(kSamples, points.size());
    for (std::int64_t k = 0; k < count; ++k) {
      // Multiples of the golden ratio are spread evenly along rows and columns.
      double unused = 0;
      const double share = std::modf((static_cast<double>(k) + 0.5) * std::numbers::phi, &unused);
      const auto i = static_cast<std::int64_t>(share * static_cast<double>(points.size()));
      x.push_back(points.x[i]);
      y.push_back(points.y[i]);
    }
  }
};

}  // namespace

int smallest_subset(refine::SubsetSigmas& sigmas, const fields::Points& points, double noise, double demanded,
                    int largest) {
  const Sample sample(points);
  /// The sigma that nine of ten points do not exceed.
  const auto sigma_of = [&](int subset) {
    std::vector<double> found = sigmas.of(subset, sample.x, sample.y);
    const auto at =
        found.begin() + static_cast<std::ptrdiff_t>(kShare * static_cast<double>(found.size() - 1));
    std::nth_element(found.begin(), at, found.end());
    return noise * *at;
  };
  // Bisection over the odd numbers 2 k + 1: too_small is known to be too small, or one below the range.
  int too_small = kSmallest / 2 - 1, large_enough = (std::min(kLargest, largest) - 1) / 2;
  while (large_enough - too_small > 1) {
    const int middle = (too_small + large_enough) / 2;
    (sigma_of(2 * middle + 1) <= demanded ? large_enough : too_small) = middle;
  }
  return 2 * large_enough + 1;
}

}  // namespace dic::analysis
