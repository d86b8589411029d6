#pragma once

#include <dic/image.hpp>
#include <dic/track.hpp>
#include <vector>

#include "core/parallel.hpp"
#include "fields/points.hpp"

namespace dic::analysis {

/// Finds, for each point, the quality of the best other match of its subset in the reference itself, within
/// the motion that the search allows (see ReferenceAnalysis::alternatives). Empty if the texture does not
/// repeat itself, as judged from a few samples. Throws what the correlation throws.
std::vector<float> find_alternatives(const TrackOptions& options, ImageView reference, ImageView roi,
                                     const fields::Points& points, core::ThreadPool& pool);

}  // namespace dic::analysis
