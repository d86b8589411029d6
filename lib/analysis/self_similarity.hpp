#pragma once

#include <dic/image.hpp>
#include <dic/track.hpp>
#include <vector>

#include "core/parallel.hpp"
#include "fields/points.hpp"

namespace dic::analysis {

/// For each point, how good the best other match of its subset in the reference itself is, within the motion
/// that the search allows (see ReferenceAnalysis::alternatives); empty where the texture does not repeat
/// itself, which a few samples tell. Throws what the correlation throws.
std::vector<float> find_alternatives(const TrackOptions& options, ImageView reference, ImageView roi,
                                     const fields::Points& points, ThreadPool& pool);

}  // namespace dic::analysis
