#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <vector>

#include "core/parallel.hpp"
#include "fields/points.hpp"

namespace dic::analysis {

/// Nodes whose whole subset is a plane of grey values, to within their rounding to whole levels. Oblique to
/// the rows, the steps of the rounding look like a texture. Empty for images of floats.
std::vector<std::int64_t> find_ramps(ImageView reference, const fields::Points& points, int subset,
                                     core::ThreadPool& pool);

}  // namespace dic::analysis
