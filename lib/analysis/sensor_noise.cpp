#include "analysis/sensor_noise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace dic::analysis {
namespace {

constexpr int kSize = PowerSpectrum::kSize;
constexpr double kLikeSlopes = 0.9;      ///< correlation of the power with that of slopes, at least
constexpr double kWhite = 2;             ///< ratio of the jitter in two ranges of frequency, at most
constexpr double kLeastJitter = 0.03;    ///< px
constexpr double kPatternStandsOut = 6;  ///< power of a pattern over that beside it, at least
constexpr double kMosaicStandsOut = 2;   ///< power at the highest frequencies over that below, at least
constexpr double kPowerOfLines = 2.0 / 3 * kSize;  ///< power of lines of variance 1, under the Hann window

/// The power at frequencies along and across lines: rows, or columns.
class Lines {
 public:
  Lines(const PowerSpectrum& spectrum, bool rows) : spectrum_(spectrum), rows_(rows) {}

  double at(int along, int across) const {
    const int a = (along + kSize) % kSize, b = (across + kSize) % kSize;
    return rows_ ? spectrum_(a, b) : spectrum_(b, a);
  }
  /// Median over frequencies across the lines, of both signs.
  double median_across(int along, int first, int last) const {
    std::vector<double> powers;
    for (int across = first; across <= last; ++across)
      powers.insert(powers.end(), {at(along, across), at(along, -across)});
    return median_of(powers);
  }
  /// Median over frequencies along the lines.
  double median_along(int first, int last, int across) const {
    std::vector<double> powers;
    for (int along = first; along <= last; ++along)
      powers.insert(powers.end(), {at(along, across), at(along, -across)});
    return median_of(powers);
  }

 private:
  static double median_of(std::vector<double>& values) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  const PowerSpectrum& spectrum_;
  bool rows_;
};

/// Variance of the displacement of lines, px^2, from the power in a range of frequencies across them; 0 if it
/// does not go with the slopes along the lines.
double jitter_variance(const Lines& lines, double noise, int first, int last) {
  double both = 0, powers = 0, slopes = 0;
  for (int along = 0; along <= kSize / 2; ++along) {
    double texture = 0;
    for (int across = 0; across < kSize; ++across) texture += (lines.at(along, across) - noise) / kSize;
    const double slope = std::pow(PowerSpectrum::frequency(along), 2) * std::max(0.0, texture);
    const double power = lines.median_across(along, first, last) - noise;
    both += power * slope, powers += power * power, slopes += slope * slope;
  }
  return both > kLikeSlopes * std::sqrt(powers * slopes) ? both / slopes : 0;
}

double jitter(const Lines& lines, double noise) {
  const double high = jitter_variance(lines, noise, 27, 31), low = jitter_variance(lines, noise, 21, 26);
  const double found = std::sqrt(std::max(0.0, high));
  return low < kWhite * high && found > kLeastJitter ? found : 0;
}

/// Standard deviation of a grey value that is constant along lines and white across them.
double pattern(const Lines& across) {
  const double there = across.median_along(20, 28, 0);
  const double beside = std::max(across.median_along(20, 28, 2), across.median_along(20, 28, 3));
  return there > kPatternStandsOut * beside ? std::sqrt((there - beside) / kPowerOfLines) : 0;
}

double below_mosaic(const PowerSpectrum& spectrum, double highest) {
  std::vector<double> powers;
  for (int j = 16; j <= 22; ++j)
    for (int i = 16; i <= 22; ++i) powers.insert(powers.end(), {spectrum(i, j), spectrum(i, kSize - j)});
  const auto middle = powers.begin() + std::ssize(powers) / 2;
  std::nth_element(powers.begin(), middle, powers.end());
  return highest > kMosaicStandsOut * *middle ? std::sqrt(*middle / highest) : 1;
}

}  // namespace

SensorNoise sensor_noise(const PowerSpectrum& of_image) {
  const PowerSpectrum spectrum = of_image.typical();
  const double noise = spectrum.noise_variance();
  const Lines rows(spectrum, true), columns(spectrum, false);
  return {jitter(rows, noise), jitter(columns, noise), pattern(rows), pattern(columns),
          below_mosaic(spectrum, noise)};
}

}  // namespace dic::analysis
