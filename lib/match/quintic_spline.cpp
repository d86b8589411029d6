#include "match/quintic_spline.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dic::match {
namespace {

constexpr int kTaps = 6;
constexpr int kFirstTap = -2;  ///< offset of the first tap from the pixel at or before the position

struct Taps {
  std::array<double, kTaps> value, slope;
};

/// Computes 120 times the quintic B-spline and its derivative at distance `u` >= 0 from its centre
/// (`coefficients_` include the factor 1/120 per axis).
void basis(double u, double& value, double& slope) {
  if (u < 1) {
    value = 66 + u * u * (-60 + u * u * (30 - 10 * u));
    slope = u * (-120 + u * u * (120 - 50 * u));
  } else if (u < 2) {
    value = 51 + u * (75 + u * (-210 + u * (150 + u * (-45 + 5 * u))));
    slope = 75 + u * (-420 + u * (450 + u * (-180 + 25 * u)));
  } else {
    const double rest = 3 - u, cube = rest * rest * rest;
    value = cube * rest * rest;
    slope = -5 * cube * rest;
  }
}

Taps taps_at(double fraction) {
  Taps taps{};
  for (int k = 0; k < kTaps; ++k) {
    const double u = fraction - (k + kFirstTap);
    basis(std::abs(u), taps.value[k], taps.slope[k]);
    if (u < 0) taps.slope[k] = -taps.slope[k];
  }
  return taps;
}

template <typename T>
double dot(const T* samples, std::ptrdiff_t stride, const std::array<double, kTaps>& weights) {
  double sum = 0;
  for (int k = 0; k < kTaps; ++k) sum += weights[k] * samples[k * stride];
  return sum;
}

}  // namespace

QuinticSpline::QuinticSpline(ImageView image, core::ThreadPool& pool) {
  Image relative(image.size(), ScalarType::f32);
  visit_scalar(image.type, [&]<typename T>(T) {
    offset_ = static_cast<double>(image.row<T>(0)[0]);
    core::for_each_row(pool, image.height, [&](int y) {
      std::transform(image.row<T>(y), image.row<T>(y) + image.width, relative.row<float>(y),
                     [&](T value) { return static_cast<float>(static_cast<double>(value) - offset_); });
    });
  });
  refine::spline_coefficients(relative, Interpolation::quintic, coefficients_, pool);
}

double QuinticSpline::at(double x, double y) const {
  const double x0 = std::floor(x), y0 = std::floor(y);
  const Taps across = taps_at(x - x0), down = taps_at(y - y0);
  const float* corner = coefficients_.at(static_cast<int>(x0) + kFirstTap, static_cast<int>(y0) + kFirstTap);
  double sum = offset_;
  for (int k = 0; k < kTaps; ++k)
    sum += down.value[k] * dot(corner + k * coefficients_.stride(), 1, across.value);
  return sum;
}

SampleImage QuinticSpline::samples() const {
  return {.values = coefficients_.at(0, 0),
          .stride = coefficients_.stride(),
          .width = coefficients_.width(),
          .height = coefficients_.height(),
          .sampling = Sampling::quintic,
          .offset = static_cast<float>(offset_)};
}

void QuinticSpline::block(double x, double y, int width, int height, Block& out) const {
  const double x0 = std::floor(x), y0 = std::floor(y);
  const Taps across = taps_at(x - x0), down = taps_at(y - y0);
  // All positions have the same fraction, so the spline is separable: rows first, then columns.
  const int rows = height + kTaps - 1;
  std::vector<double> value(static_cast<std::size_t>(rows) * width), slope(value.size());
  for (int r = 0; r < rows; ++r) {
    const float* row =
        coefficients_.at(static_cast<int>(x0) + kFirstTap, static_cast<int>(y0) + kFirstTap + r);
    for (int i = 0; i < width; ++i) {
      value[static_cast<std::size_t>(r) * width + i] = dot(row + i, 1, across.value);
      slope[static_cast<std::size_t>(r) * width + i] = dot(row + i, 1, across.slope);
    }
  }
  const std::size_t count = static_cast<std::size_t>(width) * height;
  for (auto* array : {&out.value, &out.dx, &out.dy}) array->resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    out.value[k] = offset_ + dot(&value[k], width, down.value);
    out.dx[k] = dot(&slope[k], width, down.value);
    out.dy[k] = dot(&value[k], width, down.slope);
  }
}

}  // namespace dic::match
