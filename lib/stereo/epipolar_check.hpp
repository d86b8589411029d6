#pragma once

#include <dic/fields.hpp>
#include <dic/shared/epipolar.hpp>
#include <span>

#include "core/parallel.hpp"

/// Whether the matches of two cameras agree with their calibration.
namespace dic::stereo {

struct EpipolarSummary {
  double median = 0;  ///< median of the distances without sign, px
  double sd = 0;      ///< robust standard deviation of the distances about what is common to them, px
};

/// Fits the polynomial that is common to the distances of some points, with weights that leave out what is
/// far from it; a constant if the points are few.
CommonDistance common_distance(std::span<const EpipolarSample> samples);

/// Sets the status of points whose distance differs from what is common to all points, a polynomial of
/// degree 4 over the image (how the calibration is off), by more than noise explains. Neighbours that
/// are off together by up to 0.5 px are believed: the calibration is worse there. Only points that are
/// `ok` or `outlier` count. The noise is the predicted one, or larger if most points scatter more than
/// predicted.
EpipolarSummary mark_contradictions(const EpipolarJob& job, core::ThreadPool& pool);

}  // namespace dic::stereo
