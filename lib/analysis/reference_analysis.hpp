#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <optional>
#include <vector>

#include "analysis/noise.hpp"

namespace dic::analysis {

/// Results of the analysis of the original reference, before any frame is measured. All references of a
/// backend share them.
struct ReferenceAnalysis {
  Image roi;  ///< ROI as 0 or 255, the reference's size; empty = everywhere
  /// Residual of the best other match of every point in the reference, grey levels, or kUnique,
  /// kNoAlternative (<dic/shared/trust_rules.hpp>); empty if no point has one.
  std::vector<float> alternatives;
  /// Largest motion, px along each axis, that the image pyramid looks for, if the whole texture repeats
  /// itself; none = any.
  std::optional<int> largest_motion;
  /// Nodes whose subset is a plane of grey values, so that only their rounding could be matched.
  std::vector<std::int64_t> ramps;
  /// Squares in which the noise of every image is estimated.
  std::vector<NoisePatch> noise_patches;
};

}  // namespace dic::analysis
