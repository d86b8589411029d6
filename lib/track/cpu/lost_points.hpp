#pragma once

#include <vector>

#include "track/cpu/host_reference.hpp"

namespace dic::track {

/// Tells which lost points left the image. results: by point.
void mark_out_of_image(const PointNodes& points, const HostReference& reference,
                       std::span<RefinedPoint> results);

}  // namespace dic::track
