#pragma once

#include <dic/image.hpp>
#include <dic/track.hpp>
#include <optional>
#include <vector>

#include "core/parallel.hpp"
#include "fields/points.hpp"

namespace dic::analysis {

/// Limits that a reference that repeats itself sets to the search, see ReferenceAnalysis.
struct Repeats {
  std::vector<float> alternatives;
  std::optional<int> largest_motion;
};

/// Finds, for each point, the quality of the best other match of its subset in the reference itself, within
/// the motion that the search allows. Empty if the texture does not repeat itself, as judged from a few
/// samples and the autocorrelation of the image. If all of it repeats at distances that are large compared
/// with usual motions, it is not ambiguous, but the motion is limited to a quarter of the shortest distance.
/// Throws what the correlation throws.
Repeats find_repeats(const TrackOptions& options, ImageView reference, ImageView roi,
                     const fields::Points& points, core::ThreadPool& pool);

}  // namespace dic::analysis
