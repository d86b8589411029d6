#pragma once

#include <dic/image.hpp>
#include <dic/shared/two_cameras.hpp>
#include <vector>

#include "track/possible_places.hpp"

namespace dic::stereo {

/// The epipolar line of the left image point (x, y) in a right image of this size: places at most `spacing`
/// px apart, at all depths in front of both cameras. A distorting lens bends it. Empty where the lens model
/// of the left camera has no inverse.
std::vector<track::Place> epipolar_line(const CameraPair& cameras, Size right, double x, double y,
                                        double spacing);

}  // namespace dic::stereo
