#pragma once

#include <array>
#include <dic/camera_rig.hpp>
#include <dic/export.hpp>
#include <span>

/// Corrects a rig whose cameras moved since their calibration, from matches of the specimen's speckle.
namespace dic {

/// How a rig changed. The distance of the cameras is kept, because matches do not tell the scale.
struct RigCorrection {
  CameraRig rig;  ///< corrected; its epipolar_px is epipolar_after_px
  /// Rotation of the right camera about its axes x, y, z, and its standard deviations, degrees.
  std::array<double, 3> rotation_deg = {}, sigma_rotation_deg = {};
  /// Turn of the direction from the left to the right camera, and its standard deviation, degrees.
  double direction_deg = 0, sigma_direction_deg = 0;
  /// Robust standard deviation of the right points' distances from their epipolar lines, about 0, px.
  double epipolar_before_px = 0, epipolar_after_px = 0;
  std::size_t points = 0;  ///< number of pairs that agree with the corrected rig
};

/// The distance of a right point from the epipolar line of its left point, in ideal pixels of the right
/// camera; its sign says on which side. NaN where a lens has no inverse.
DIC_API double epipolar_distance(const Camera& left, const Camera& right, const RigCamera& pose,
                                 Camera::Point left_point, Camera::Point right_point);

/// Refines rotation and direction of the right camera of a rig of two, so that points lie on their epipolar
/// lines: robust least squares of Sampson's distances ("Fitting conic sections to very scattered data", 1982)
/// by Gauss-Newton steps. A prior of half a degree keeps directions that the matches do not determine, so
/// that a flat specimen cannot bend the rig. left, right: positions in px of the same material points; pairs
/// with NaN are skipped. Throws UsageError: lists of different lengths, fewer than 20 pairs, a rig that is
/// invalid.
DIC_API RigCorrection refine_rig(const CameraRig& rig, std::span<const Camera::Point> left,
                                 std::span<const Camera::Point> right);

}  // namespace dic
