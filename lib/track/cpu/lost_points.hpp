#pragma once

#include <vector>

#include "track/cpu/host_reference.hpp"

namespace dic::track {

/// Sets the status of lost points that left the image to out_of_image. results: by point.
void mark_out_of_image(const PointNodes& points, const HostReference& reference,
                       std::span<RefinedPoint> results);

}  // namespace dic::track
