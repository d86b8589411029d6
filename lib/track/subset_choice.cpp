#include "track/subset_choice.hpp"

#include <algorithm>
#include <cmath>
#include <dic/refine.hpp>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

namespace dic::track {
namespace {

constexpr int kSmallest = 11, kLargest = 101;  ///< px, odd
constexpr std::int64_t kSamples = 500;         ///< points that are looked at
constexpr double kShare = 0.9;                 ///< of them that must be as good as demanded

/// Some points, spread evenly over all.
struct Sample {
  std::vector<int> x, y;

  explicit Sample(const Points& points) {
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

/// What this share of the points keeps.
double unit_sigma(const RefineOptions& refine, int threads, ImageView reference, ImageView roi,
                  const Sample& sample) {
  std::vector<double> sigmas = unit_sigmas(refine, threads, reference, roi, sample.x, sample.y);
  const auto at =
      sigmas.begin() + static_cast<std::ptrdiff_t>(kShare * static_cast<double>(sigmas.size() - 1));
  std::nth_element(sigmas.begin(), at, sigmas.end());
  return *at;
}

}  // namespace

std::vector<double> unit_sigmas(const RefineOptions& refine, int threads, ImageView reference, ImageView roi,
                                std::span<const int> x, std::span<const int> y) {
  Refiner refiner(refine, "cpu", threads);
  refiner.set_reference(reference, x, y, roi);
  refiner.set_current(reference);
  std::vector<std::int64_t> which(x.size());
  for (std::size_t k = 0; k < which.size(); ++k) which[k] = static_cast<std::int64_t>(k);
  const std::vector<ShapeParameters> starts(which.size());
  std::vector<RefinedPoint> refined(which.size());
  refiner.refine(which, starts, refined);  // of the reference on itself: it ends at once
  std::vector<double> sigmas;
  for (const RefinedPoint& point : refined)
    sigmas.push_back(point.status == Status::ok ? std::max(point.unit_sigma_u, point.unit_sigma_v)
                                                : std::numeric_limits<double>::infinity());
  return sigmas;
}

int smallest_subset(const TrackOptions& options, ImageView reference, ImageView roi, const Points& points,
                    double noise) {
  const Sample sample(points);
  const int side = std::min(reference.width, reference.height);
  // Bisection over the odd numbers 2 k + 1: too_small is known to be too small, or is one below the range.
  int too_small = kSmallest / 2 - 1, large_enough = (std::min(kLargest, side % 2 ? side : side - 1) - 1) / 2;
  while (large_enough - too_small > 1) {
    const int middle = (too_small + large_enough) / 2;
    RefineOptions refine = options.refine;
    refine.subset = 2 * middle + 1;
    const bool enough =
        noise * unit_sigma(refine, options.threads, reference, roi, sample) <= *options.sigma_target;
    (enough ? large_enough : too_small) = middle;
  }
  return 2 * large_enough + 1;
}

}  // namespace dic::track
