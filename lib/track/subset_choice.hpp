#pragma once

#include <dic/image.hpp>
#include <dic/track.hpp>
#include <span>
#include <vector>

#include "track/points.hpp"

namespace dic::track {

/// The larger of sigma_u and sigma_v of every point (x, y), px, for noise of 1 grey level that leads to sigma
/// by the matrix of a subset alone; infinite where its subset cannot be measured. reference: as it is
/// measured. roi: 0 or 255.
std::vector<double> unit_sigmas(const RefineOptions& refine, int threads, ImageView reference, ImageView roi,
                                std::span<const int> x, std::span<const int> y);

/// The smallest subset, 11 to 101 px and within the image, whose predicted sigma_u and sigma_v are at most
/// options.sigma_target at nine of ten points; the largest where none is that good. reference: as it is
/// measured. noise: standard deviation that leads to sigma by the matrix of a subset alone, grey levels. roi:
/// 0 or 255.
int smallest_subset(const TrackOptions& options, ImageView reference, ImageView roi, const Points& points,
                    double noise);

}  // namespace dic::track
