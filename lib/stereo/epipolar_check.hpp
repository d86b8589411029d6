#pragma once

#include <array>
#include <dic/fields.hpp>
#include <span>

#include "core/parallel.hpp"

/// Whether the matches of two cameras agree with their calibration.
namespace dic::stereo {

/// Epipolar distances over the grid.
struct EpipolarDistances {
  std::span<const float> px;      ///< signed distances; NaN where there is none
  std::span<const double> sigma;  ///< predicted standard deviations of the distances, px
};

/// A distance at a place of the grid.
struct EpipolarSample {
  double x, y;  ///< from -1 to 1 over the grid
  double px, sigma;
};

/// Part that is common to distances: a polynomial of degree 4 over the grid.
struct CommonDistance {
  std::array<double, 15> coefficients;

  double at(double x, double y) const;
};

/// Fits the polynomial with weights that leave out what is far from it. A few samples have their median alone
/// in common.
CommonDistance common_distance(std::span<const EpipolarSample> samples);

struct EpipolarSummary {
  double median = 0;  ///< median of the distances without sign, px
  double sd = 0;      ///< robust standard deviation of the distances about what is common to them, px
};

/// Sets the status of points whose distance differs from what is common to all points, a polynomial of
/// degree 4 over the image (how the calibration is off), by more than noise explains. Neighbours that
/// are off together by up to 0.5 px are believed: the calibration is worse there. Only points that are
/// `ok` or `outlier` count. The noise is the predicted one, or larger if most points scatter more than
/// predicted.
EpipolarSummary mark_contradictions(Field& field, const EpipolarDistances& distances, core::ThreadPool& pool);

}  // namespace dic::stereo
