#include "track/noise.hpp"

#include <cmath>
#include <complex>
#include <numbers>

namespace dic::track {
namespace {

/// Centred B-spline of degree 3 or 5.
double b_spline(Interpolation interpolation, double x) {
  x = std::abs(x);
  const auto power = [](double base, int exponent) { return base > 0 ? std::pow(base, exponent) : 0.0; };
  if (interpolation == Interpolation::cubic) return (power(2 - x, 3) - 4 * power(1 - x, 3)) / 6;
  return (power(3 - x, 5) - 6 * power(2 - x, 5) + 15 * power(1 - x, 5)) / 120;
}

/// Gain by Parseval's theorem: mean of |interpolation's frequency response|^2.
double gain_by_frequency(Interpolation interpolation, double fraction) {
  constexpr int kFrequencies = 256;
  double gain = 0;
  for (int f = 0; f < kFrequencies; ++f) {
    const double omega = 2 * std::numbers::pi * f / kFrequencies;
    std::complex<double> sampled = 0, prefilter = 0;
    for (int k = -3; k <= 3; ++k) {
      const auto phase = std::polar(1.0, -omega * k);
      sampled += b_spline(interpolation, fraction - k) * phase;
      prefilter += b_spline(interpolation, k) * phase;
    }
    gain += std::norm(sampled / prefilter) / kFrequencies;
  }
  return gain;
}

NoiseGains gain_table(Interpolation interpolation) {
  constexpr int steps = NoiseGains::kSteps;
  NoiseGains table;
  for (int i = 0; i <= steps; ++i) table.gain[i] = gain_by_frequency(interpolation, 0.5 * i / steps);
  return table;
}

}  // namespace

const NoiseGains& noise_gains(Interpolation interpolation) {
  static const auto cubic = gain_table(Interpolation::cubic);
  static const auto quintic = gain_table(Interpolation::quintic);
  return interpolation == Interpolation::cubic ? cubic : quintic;
}

}  // namespace dic::track
