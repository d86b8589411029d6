#pragma once

#include <dic/refine.hpp>
#include <dic/shared/track_rules.hpp>

namespace dic {

/// Variance that white noise keeps when it is interpolated by a spline of the given degree at a fraction of a
/// px: sum of the squared weights of all pixels, 1 at 0, about 0.7 (cubic) halfway between two pixels.
double interpolation_noise_gain(Interpolation interpolation, double fraction);
/// Its values for track::noise_from_residual.
const track::NoiseGains& noise_gains(Interpolation interpolation);

/// Standard deviation of the noise of one picture, grey levels, from the residual of a refined subset: the
/// reference's noise is there in full, the current picture's is smoothed by the interpolation.
double noise_from_residual(const RefinedPoint& point, Interpolation interpolation, int radius);

}  // namespace dic
