#pragma once

#include <cstdint>
#include <dic/shared/node_window.hpp>
#include <dic/shared/small_matrix.hpp>
#include <dic/shared/status.hpp>

/// Points whose matches contradict the calibration, for CPU and GPU. See mark_contradictions() for the rules.
namespace dic::stereo {

/// Factor from the median deviation of a normal distribution to its standard deviation.
constexpr double kFromMedian = 1.4826;

/// Number of the products of powers of x and y up to a degree.
constexpr int products_up_to(int degree) { return (degree + 1) * (degree + 2) / 2; }

/// Products of powers of x and y, from -1 to 1 over the grid: x^a y^b at product_index(a, b).
template <int kDegree>
struct PowerProducts {
  double at[products_up_to(kDegree)];

  DIC_HOST_DEVICE PowerProducts(double x, double y) {
    at[0] = 1;
    int k = 1;
    for (int degree = 1; degree <= kDegree; ++degree) {
      for (int j = 0; j < degree; ++j, ++k) at[k] = at[k - degree] * x;
      at[k] = at[k - degree - 1] * y;
      ++k;
    }
  }
};
constexpr int product_index(int a, int b) { return (a + b) * (a + b + 1) / 2 + b; }

/// Degree of the polynomial that is common to the epipolar distances, and number of its terms.
constexpr int kCommonDegree = 4;
constexpr int kCommonTerms = products_up_to(kCommonDegree);
using CommonTerms = PowerProducts<kCommonDegree>;

/// The polynomial that is common to the distances, and how much they scatter about it, in units of their
/// predicted standard deviations, at least 1.
struct CommonDistance {
  double coefficients[kCommonTerms];
  double scale;

  DIC_HOST_DEVICE double at(double x, double y) const {
    const CommonTerms terms(x, y);
    double sum = 0;
    for (int k = 0; k < kCommonTerms; ++k) sum += coefficients[k] * terms.at[k];
    return sum;
  }
};

/// A distance at a place of the grid.
struct EpipolarSample {
  double x, y;  ///< from -1 to 1 over the grid
  double px, sigma;
};

/// Largest number of samples that tell what is common.
constexpr int kMostSamples = 5000;
/// Number of the n-th sample among `count` distances. Multiples of the golden ratio spread them evenly over
/// rows and columns.
DIC_HOST_DEVICE inline std::int64_t sample_number(int n, std::int64_t count) {
  constexpr double kGolden = 1.618033988749894848;
  const double multiple = n * kGolden, part = multiple - std::floor(multiple);
  return static_cast<std::int64_t>(part * static_cast<double>(count));
}

/// Sums over samples, from which the polynomial that fits them best follows.
struct CommonSums {
  static constexpr int kProducts = products_up_to(2 * kCommonDegree), kCount = kProducts + kCommonTerms;
  double at[kCount];  ///< of weight x^a y^b, then of weight px x^a y^b

  DIC_HOST_DEVICE static CommonSums zero() {
    CommonSums sums;
    for (double& sum : sums.at) sum = 0;
    return sums;
  }
  DIC_HOST_DEVICE void add(const EpipolarSample& sample, double weight) {
    const PowerProducts<2 * kCommonDegree> products(sample.x, sample.y);
    for (int k = 0; k < kProducts; ++k) at[k] += weight * products.at[k];
    for (int k = 0; k < kCommonTerms; ++k) at[kProducts + k] += weight * sample.px * products.at[k];
  }
  /// The coefficients of least squares.
  DIC_HOST_DEVICE SmallMatrix<kCommonTerms, 1> coefficients() const {
    SmallMatrix<kCommonTerms, kCommonTerms> normal;
    SmallMatrix<kCommonTerms, 1> right;
    for (int degree = 0; degree <= kCommonDegree; ++degree)
      for (int b = 0; b <= degree; ++b) {
        const int row = product_index(degree - b, b);
        right[row] = at[kProducts + row];
        for (int other = 0; other <= degree; ++other)
          for (int c = 0; c <= other; ++c)
            normal(row, product_index(other - c, c)) = at[product_index(degree - b + other - c, b + c)];
        normal(row, row) += 1e-6;
      }
    return Cholesky<kCommonTerms>(normal).solve(right);
  }
};

/// The fit of what is common to the distances of some samples: iteratively reweighted least squares with
/// Tukey's biweight, from the median of the distances.
struct CommonFit {
  static constexpr int kFewPoints = 20 * kCommonTerms;  ///< fewer samples give a constant
  static constexpr int kRounds = 8;

  /// Offset, px, from which on a sample has no weight. median: of the offsets without sign.
  DIC_HOST_DEVICE static double limit(float median) {
    return 3 * std::fmax(kFromMedian * double(median), 1e-6);
  }
  DIC_HOST_DEVICE static double weight(double offset, double limit) {
    const double part = offset / limit, rest = 1 - part * part;
    return rest > 0 ? rest * rest : 0;
  }
  /// Takes new coefficients. Returns whether they change hardly anything.
  DIC_HOST_DEVICE static bool settle(CommonDistance& common, const SmallMatrix<kCommonTerms, 1>& coefficients,
                                     double limit) {
    constexpr double kHardly = 1e-3;  // of the limit: far below the errors of the fit
    double change = 0;
    for (int k = 0; k < kCommonTerms; ++k) {
      change += std::fabs(coefficients[k] - common.coefficients[k]);
      common.coefficients[k] = coefficients[k];
    }
    return !(change > kHardly * limit);
  }
  /// median: of the offsets without sign in units of their predicted standard deviations; NaN if there are
  /// none.
  DIC_HOST_DEVICE static double scale(float median) { return std::fmax(1.0, kFromMedian * double(median)); }
};

/// The distances at all nodes.
struct EpipolarJob {
  NodeGrid grid;
  const float *px, *sigma;  ///< signed distances and their predicted standard deviations; px NaN where none
  float* offset;            ///< distances from what is common; NaN where there is none
  Status* status;           ///< changed where the cameras contradict each other

  /// True if a point has values and a distance.
  DIC_HOST_DEVICE bool has_distance(std::int64_t k) const {
    return (status[k] == Status::ok || status[k] == Status::outlier) && px[k] == px[k];
  }
  DIC_HOST_DEVICE EpipolarSample sample(std::int64_t k) const {
    return {x(k), y(k), double(px[k]), sigma_at(k)};
  }
  DIC_HOST_DEVICE double x(std::int64_t k) const { return 2.0 * grid.column(k) / grid.nx - 1; }
  DIC_HOST_DEVICE double y(std::int64_t k) const { return 2.0 * grid.row(k) / grid.ny - 1; }
  DIC_HOST_DEVICE double sigma_at(std::int64_t k) const { return sigma[k] > 1e-9F ? double(sigma[k]) : 1e-9; }
};

struct FindOffset {
  EpipolarJob job;
  const CommonDistance* common;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    job.offset[k] = job.has_distance(k)
                        ? static_cast<float>(double(job.px[k]) - common->at(job.x(k), job.y(k)))
                        : std::numeric_limits<float>::quiet_NaN();
  }
};

/// Marks points whose offset is too large.
struct MarkContradiction {
  EpipolarJob job;
  const CommonDistance* common;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    // Standard deviations from the common distance beyond which two cameras contradict each other.
    constexpr double kLargest = 5;
    // The same, px, whatever the noise: a match that is so uncertain says nothing about a position.
    constexpr double kLargestPx = 1;
    // Distance, px, up to which neighbours that are off by the same are believed: a calibration may be worse
    // in places, as in the corners of an image.
    constexpr double kLargestCommonPx = 0.5;
    const double offset = double(job.offset[k]),
                 limit = std::fmin(kLargest * common->scale * job.sigma_at(k), kLargestPx);
    if (!(std::fabs(offset) > limit)) return;
    const double shared = local_median(k);
    if (std::fabs(shared) > kLargestCommonPx || std::fabs(offset - shared) > limit)
      job.status[k] = Status::epipolar;
  }

 private:
  /// Median of the offsets of the neighbours; 0 if they are too few.
  DIC_HOST_DEVICE double local_median(std::int64_t k) const {
    constexpr int kNeighbours = 4;  // half the side of their square, nodes
    constexpr int kEnough = 10;
    const NodeGrid& grid = job.grid;
    const int i = grid.column(k), j = grid.row(k);
    const auto for_each = [&](const auto& visit) {
      for (int y = j < kNeighbours ? 0 : j - kNeighbours; y <= j + kNeighbours && y < grid.ny; ++y)
        for (int x = i < kNeighbours ? 0 : i - kNeighbours; x <= i + kNeighbours && x < grid.nx; ++x)
          if (const float value = job.offset[std::int64_t{y} * grid.nx + x]; value == value) visit(value);
    };
    int count = 0;
    for_each([&](float) { ++count; });
    if (count < kEnough) return 0;
    // The value of this rank, by counting: kernels need no array for it.
    float median = 0;
    for_each([&](float candidate) {
      int less = 0, equal = 0;
      for_each([&](float value) { less += value < candidate, equal += value == candidate; });
      if (less <= count / 2 && count / 2 < less + equal) median = candidate;
    });
    return double(median);
  }
};

}  // namespace dic::stereo
