#pragma once

#include <dic/shared/peak.hpp>

#include "points/points.cuh"

/// Positions of search windows, and displacements from their peaks.
namespace dic::kernels {

/// Top-left pixel of the square subset of a point.
__device__ inline PatchPosition reference_of(const GridPoints& points, std::int32_t i, int radius) {
  return {0, points.x[i] - radius, points.y[i] - radius};
}

/// Top-left pixel of the part of the subset that is inside image and ROI.
__device__ inline PatchPosition first_pixel_of(const GridPoints& points, std::int32_t i) {
  const PreparedSubset& s = points.subsets[i];
  return {0, s.x + s.left, s.y + s.top};
}

/// Sum of both parts, rounded; halves are rounded away from zero, as on the CPU.
__device__ inline int rounded(std::int32_t whole, float rest) {
  return static_cast<int>(std::lround(whole + double{rest}));
}

/// The window of `range` px around a displaced subset.
__device__ inline PatchPosition window_around(const PatchPosition& reference, std::int32_t u, float rest_u,
                                              std::int32_t v, float rest_v, int range) {
  return {0, reference.x + rounded(u, rest_u) - range, reference.y + rounded(v, rest_v) - range};
}

struct FoundDisplacement {
  SplitDisplacement u, v;
};
/// Displacement of a subset whose peak was found in a window.
__device__ inline FoundDisplacement displacement_at(const PatchPosition& reference,
                                                    const PatchPosition& window, const Peak& peak) {
  const PeakOffset offset = fitted_peak(peak.neighbourhood);
  return {SplitDisplacement(window.x - reference.x + peak.dx + offset.x),
          SplitDisplacement(window.y - reference.y + peak.dy + offset.y)};
}

/// Takes the displacement of a peak as start unless its score is lower than that of the start. Equal scores
/// are taken: a peak that was on the border of the last window is found again, now with all neighbours for
/// the fit. A point that is left to its neighbours takes none. Returns whether the peak was taken.
__device__ inline bool take_peak(const PatchPosition& reference, const PatchPosition& window,
                                 const Peak& peak, PointStart& start) {
  if (start.score == PointStart::kLeftToNeighbours || !peak.found || peak.score < start.score) return false;
  const auto [u, v] = displacement_at(reference, window, peak);
  start.u = u.whole;
  start.v = v.whole;
  start.shape.u[0] = u.rest;
  start.shape.v[0] = v.rest;
  start.score = peak.score;
  return true;
}

}  // namespace dic::kernels
