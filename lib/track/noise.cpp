#include "track/noise.hpp"

#include <array>
#include <cmath>
#include <complex>
#include <dic/shared/gaussian.hpp>
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

/// Mean of |interpolation's frequency response|^2 over the power of the noise: Parseval's theorem.
double gain_by_frequency(Interpolation interpolation, const std::vector<double>& low_pass, double fraction) {
  constexpr int kFrequencies = 256;
  const Taps sampled = taps_at(interpolation, fraction), prefilter = taps_at(interpolation, 0);
  double gain = 0, noise = 0;
  for (int f = 0; f < kFrequencies; ++f) {
    const double omega = 2 * std::numbers::pi * f / kFrequencies;
    const double power = std::pow(response_of(low_pass, omega), 2);
    gain += power * power_of(sampled, omega) / power_of(prefilter, omega);
    noise += power;
  }
  return gain / noise;
}

NoiseGains gain_table(Interpolation interpolation, double smoothing) {
  constexpr int steps = NoiseGains::kSteps;
  const std::vector<double> low_pass = gaussian_taps(smoothing);
  NoiseGains table;
  for (int i = 0; i <= steps; ++i)
    table.gain[i] = gain_by_frequency(interpolation, low_pass, 0.5 * i / steps);
  return table;
}

}  // namespace

NoiseGains noise_gains(Interpolation interpolation, double smoothing) {
  if (smoothing > 0) return gain_table(interpolation, smoothing);
  if (interpolation == Interpolation::cubic) {
    static const auto cubic = gain_table(Interpolation::cubic, 0);
    return cubic;
  }
  static const auto quintic = gain_table(Interpolation::quintic, 0);
  return quintic;
}

NoiseModel noise_model(const TrackOptions& options, ScalarType type) {
  NoiseModel model;
  model.gains = noise_gains(options.refine.interpolation, options.refine.smoothing);
  model.radius = options.refine.subset / 2;
  if (options.noise) model.given = *options.noise;
  const bool whole_levels = type != ScalarType::f32 && type != ScalarType::f64;
  model.least = whole_levels ? 1 / std::sqrt(12.0) : 0;
  // What noise adds to the matrix varies by a share that falls with the side of the subset: of what it
  // leaves, this must be known to a fifth.
  const double most = options.refine.subset / 8.0;
  model.most_share = most / (1 + most);
  return model;
}

}  // namespace dic::track
