#pragma once

#include <array>
#include <dic/image.hpp>
#include <optional>
#include <vector>

#include "fields/points.hpp"

namespace dic::analysis {

/// Mean power spectrum of tiles of an image, each under a Hann window; white noise of variance n^2 has the
/// value n^2 at every frequency.
class PowerSpectrum {
 public:
  static constexpr int kSize = 64;  ///< px, side of a tile

  /// The spectrum of a few tiles around points, spread over all of them. No value if the image is smaller
  /// than a tile, or without points.
  static std::optional<PowerSpectrum> of(ImageView image, const fields::Points& points);

  /// Power at frequency (x, y), each 2 pi k / kSize, grey levels^2.
  double operator()(int kx, int ky) const { return power_[ky * kSize + kx]; }
  /// Angular frequency of index k, in (-pi, pi].
  static double frequency(int k);
  /// Variance of the white noise, grey levels^2: the power in the corner of the spectrum, beyond three
  /// quarters of the highest frequency along both axes, where the optics leave nothing of a pattern.
  double noise_variance() const;
  /// The spectrum of the median tile instead of the mean: what single tiles show (the straight edge of the
  /// specimen, a date that is drawn into the image) does not count.
  PowerSpectrum typical() const;

 private:
  PowerSpectrum() : power_(static_cast<std::size_t>(kSize) * kSize) {}

  std::vector<double> power_, typical_;
};

}  // namespace dic::analysis
