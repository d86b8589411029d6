#pragma once

#include <dic/image.hpp>
#include <dic/shared/uncertainty.hpp>
#include <dic/track.hpp>

namespace dic::track {

/// Noise gains of a spline of the given degree: 1 at 0, about 0.7 (cubic) halfway between two pixels.
/// smoothing: see RefineOptions; the gains are those of noise after it.
NoiseGains noise_gains(Interpolation interpolation, double smoothing);

/// What is known of the noise of images of this type.
NoiseModel noise_model(const TrackOptions& options, ScalarType type);

}  // namespace dic::track
