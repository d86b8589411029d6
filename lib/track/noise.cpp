#include "track/noise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

namespace dic::track {
namespace {

/// Centred B-spline of degree 3 or 5.
double b_spline(Interpolation interpolation, double x) {
  x = std::abs(x);
  const auto power = [](double base, int exponent) { return base > 0 ? std::pow(base, exponent) : 0.0; };
  if (interpolation == Interpolation::cubic) return (power(2 - x, 3) - 4 * power(1 - x, 3)) / 6;
  return (power(3 - x, 5) - 6 * power(2 - x, 5) + 15 * power(1 - x, 5)) / 120;
}

constexpr int kReach = 3;  ///< of the spline, px
using Taps = std::array<double, 2 * kReach + 1>;

/// Weights of the coefficients around a position between two pixels.
Taps taps_at(Interpolation interpolation, double fraction) {
  Taps taps;
  for (int k = -kReach; k <= kReach; ++k) taps[k + kReach] = b_spline(interpolation, fraction - k);
  return taps;
}

/// Squared amplitude that remains of a wave.
double power_of(const Taps& taps, double omega) {
  std::complex<double> response = 0;
  const std::complex<double> turn = std::polar(1.0, -omega);
  for (const double tap : taps) response = response * turn + tap;
  return std::norm(response);
}

/// Gain by Parseval's theorem: mean of |interpolation's frequency response|^2.
double gain_by_frequency(Interpolation interpolation, double fraction) {
  constexpr int kFrequencies = 256;
  const Taps sampled = taps_at(interpolation, fraction), prefilter = taps_at(interpolation, 0);
  double gain = 0;
  for (int f = 0; f < kFrequencies; ++f) {
    const double omega = 2 * std::numbers::pi * f / kFrequencies;
    gain += power_of(sampled, omega) / power_of(prefilter, omega) / kFrequencies;
  }
  return gain;
}

NoiseGains gain_table(Interpolation interpolation) {
  constexpr int steps = NoiseGains::kSteps;
  NoiseGains table;
  for (int i = 0; i <= steps; ++i) table.gain[i] = gain_by_frequency(interpolation, 0.5 * i / steps);
  return table;
}

template <typename T>
double noise_variance(const ImageView& image, const NoisePlace& place) {
  constexpr int reach = NoisePlace::kReach;
  constexpr int size = 2 * reach, out = size - 4;
  double rows[size][out], sum = 0;
  for (int j = 0; j < size; ++j) {
    const T* row = image.row<T>(place.y - reach + j) + place.x - reach;
    for (int i = 0; i < out; ++i)
      rows[j][i] = double(row[i]) - 4 * double(row[i + 1]) + 6 * double(row[i + 2]) - 4 * double(row[i + 3]) +
                   double(row[i + 4]);
  }
  for (int j = 0; j < out; ++j)
    for (int i = 0; i < out; ++i) {
      const double d =
          rows[j][i] - 4 * rows[j + 1][i] + 6 * rows[j + 2][i] - 4 * rows[j + 3][i] + rows[j + 4][i];
      sum += d * d;
    }
  constexpr double gain = 70 * 70;  // sums of the squared weights
  return sum / (out * out * gain);
}

}  // namespace

const NoiseGains& noise_gains(Interpolation interpolation) {
  if (interpolation == Interpolation::cubic) {
    static const auto cubic = gain_table(Interpolation::cubic);
    return cubic;
  }
  static const auto quintic = gain_table(Interpolation::quintic);
  return quintic;
}

std::vector<NoisePlace> noise_places(Size image, std::span<const int> x, std::span<const int> y) {
  constexpr std::size_t most = 128;
  constexpr int reach = NoisePlace::kReach;
  const std::size_t spacing = (x.size() + most - 1) / most;
  std::vector<NoisePlace> places;
  for (std::size_t i = spacing / 2; i < x.size(); i += spacing)
    if (x[i] >= reach && y[i] >= reach && x[i] <= image.width - reach && y[i] <= image.height - reach)
      places.push_back({x[i], y[i]});
  return places;
}

double image_noise(ImageView image, std::span<const NoisePlace> places) {
  std::vector<double> variances;
  visit_scalar(image.type, [&](auto element) {
    for (const NoisePlace& place : places) {
      const double variance = noise_variance<decltype(element)>(image, place);
      if (variance > 0) variances.push_back(variance);  // a saturated or black place tells nothing
    }
  });
  if (variances.empty()) return 0;
  const auto middle = variances.begin() + std::ssize(variances) / 2;
  std::nth_element(variances.begin(), middle, variances.end());
  return std::sqrt(*middle);
}

NoiseModel noise_model(const TrackOptions& options, ScalarType type, double reference, double current) {
  NoiseModel model;
  model.reference = reference;
  model.current = current;
  model.gains = noise_gains(options.refine.interpolation);
  model.radius = options.refine.subset / 2;
  model.reach = std::max(1, static_cast<int>(std::lround(0.5 * options.refine.subset / options.step)));
  model.bends = options.refine.order == 1;
  if (options.noise) model.given = *options.noise;
  const bool whole_levels = type != ScalarType::f32 && type != ScalarType::f64;
  model.least = whole_levels ? 1 / std::sqrt(12.0) : 0;
  // What noise adds to the matrix varies by a share that falls with the side of the subset: of what it
  // leaves, this must be known to a fifth.
  const double most = options.refine.subset / 8.0;
  model.most_share = most / (1 + most);
  model.inflation = options.refine.order == 2 ? 3.5 : 1;  // of the squares, which are not orthogonal to 1
  return model;
}

}  // namespace dic::track
