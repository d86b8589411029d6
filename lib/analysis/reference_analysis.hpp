#pragma once

#include <dic/image.hpp>
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
  /// Squares in which the noise of every image is estimated.
  std::vector<NoisePatch> noise_patches;
};

}  // namespace dic::analysis
