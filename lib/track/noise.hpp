#pragma once

#include <dic/shared/refine_options.hpp>
#include <dic/shared/track_rules.hpp>

namespace dic::track {

/// Noise gains of a spline of the given degree: 1 at 0, about 0.7 (cubic) halfway between two pixels.
/// smoothing: see RefineOptions; the gains are those of noise after it.
NoiseGains noise_gains(Interpolation interpolation, double smoothing);

}  // namespace dic::track
