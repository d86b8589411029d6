#pragma once

#include <dic/image.hpp>
#include <dic/shared/uncertainty.hpp>
#include <dic/track.hpp>
#include <span>
#include <vector>

namespace dic::analysis {

/// Noise gains of a spline of the given degree: 1 at 0, about 0.7 (cubic) halfway between two pixels.
/// smoothing: see RefineOptions; the gains are those of noise after it.
track::NoiseGains noise_gains(Interpolation interpolation, double smoothing);

/// A square of an image where its noise is estimated; x, y: its pixel after the middle.
struct NoisePatch {
  static constexpr int kReach = 8;  ///< it has 2 * kReach px along each axis
  int x = 0, y = 0;
};
/// Some places, spread over the points.
std::vector<NoisePatch> spread_noise_patches(Size image, std::span<const int> x, std::span<const int> y);
/// Standard deviation of the noise of an image, grey levels: from fourth differences along rows and columns,
/// to which a pattern of speckles adds little. Sharp edges add more: it is an upper bound. 0 where there is
/// none.
double image_noise(ImageView image, std::span<const NoisePatch> patches);

/// What is known of the noise of two images of this size and type, of which image_noise is given.
track::NoiseModel noise_model(const TrackOptions& options, const ImageView& image, double reference,
                              double current);

}  // namespace dic::analysis
