#pragma once

#include <cstdint>
#include <dic/shared/node_window.hpp>
#include <dic/shared/status.hpp>

/// Points whose matches contradict the calibration, for CPU and GPU. See mark_contradictions() for the rules.
namespace dic::stereo {

/// Degree of the polynomial that is common to the epipolar distances, and number of its terms.
constexpr int kCommonDegree = 4;
constexpr int kCommonTerms = (kCommonDegree + 1) * (kCommonDegree + 2) / 2;

/// Products of powers of x and y, from -1 to 1 over the grid.
struct CommonTerms {
  double at[kCommonTerms];

  DIC_HOST_DEVICE CommonTerms(double x, double y) {
    at[0] = 1;
    int k = 1;
    for (int degree = 1; degree <= kCommonDegree; ++degree) {
      for (int j = 0; j < degree; ++j, ++k) at[k] = at[k - degree] * x;
      at[k] = at[k - degree - 1] * y;
      ++k;
    }
  }
};

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
  CommonDistance common;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    job.offset[k] = job.has_distance(k)
                        ? static_cast<float>(double(job.px[k]) - common.at(job.x(k), job.y(k)))
                        : std::numeric_limits<float>::quiet_NaN();
  }
};

/// Marks points whose offset is too large.
struct MarkContradiction {
  EpipolarJob job;
  double scale;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    // Standard deviations from the common distance beyond which two cameras contradict each other.
    constexpr double kLargest = 5;
    // The same, px, whatever the noise: a match that is so uncertain says nothing about a position.
    constexpr double kLargestPx = 1;
    // Distance, px, up to which neighbours that are off by the same are believed: a calibration may be worse
    // in places, as in the corners of an image.
    constexpr double kLargestCommonPx = 0.5;
    const double offset = double(job.offset[k]),
                 limit = std::fmin(kLargest * scale * job.sigma_at(k), kLargestPx);
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
