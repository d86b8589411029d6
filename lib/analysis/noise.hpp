#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <dic/shared/uncertainty.hpp>
#include <dic/track.hpp>
#include <span>
#include <vector>

#include "core/parallel.hpp"

namespace dic::analysis {

/// Noise gains of a spline of the given degree: 1 at 0, about 0.7 (cubic) halfway between two pixels.
/// smoothing: see RefineOptions; the gains hold for smoothed noise.
track::NoiseGains noise_gains(Interpolation interpolation, double smoothing);

/// A square of an image in which noise is estimated; (x, y) is the pixel right of and below its middle.
struct NoisePatch {
  static constexpr int kReach = 8;  ///< the square has 2 * kReach px along each axis
  int x = 0, y = 0;
};
/// Chooses patches spread over the points.
std::vector<NoisePatch> spread_noise_patches(Size image, std::span<const int> x, std::span<const int> y);
/// Standard deviation of the noise of an image, grey levels: from fourth differences along rows and columns,
/// to which a pattern of speckles adds little. Sharp edges add more, so that it is an upper bound. 0 if no
/// patch shows noise.
double image_noise(ImageView image, std::span<const NoisePatch> patches, core::ThreadPool& pool);
/// Number of patches that a thread takes at once: fewer take less time than a thread needs to begin.
inline constexpr std::int64_t kPatchesAtOnce = 16;

/// Noise of the two images of a measurement, see image_noise.
struct ImageNoises {
  double reference = 0, current = 0;
  bool same_focus = true;  ///< false: one of them is less sharp
};
/// The noise model of two images of this size and type.
track::NoiseModel noise_model(const TrackOptions& options, const ImageView& image, const ImageNoises& noises);

}  // namespace dic::analysis
