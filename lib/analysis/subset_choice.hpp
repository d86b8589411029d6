#pragma once

#include <dic/track.hpp>

#include "fields/points.hpp"
#include "refine/subset_sigmas.hpp"

namespace dic::analysis {

/// The smallest subset, 11 to 101 px and at most `largest`, whose predicted sigma_u and sigma_v are at most
/// `demanded` px at nine of ten points; the largest if none is that good. sigmas: of the reference as it is
/// measured. noise: standard deviation, grey levels, that leads to sigma by the matrix of a subset alone.
int smallest_subset(refine::SubsetSigmas& sigmas, const fields::Points& points, double noise, double demanded,
                    int largest);

}  // namespace dic::analysis
