#pragma once

#include <dic/image.hpp>
#include <dic/track.hpp>

#include "track/points.hpp"

namespace dic::track {

/// The smallest subset, 11 to 101 px and within the image, whose predicted sigma_u and sigma_v are at most
/// options.sigma_target at nine of ten points; the largest where none is that good. reference: as it is
/// measured. noise: standard deviation that leads to sigma by the matrix of a subset alone, grey levels. roi:
/// 0 or 255.
int smallest_subset(const TrackOptions& options, ImageView reference, ImageView roi, const Points& points,
                    double noise);

}  // namespace dic::track
