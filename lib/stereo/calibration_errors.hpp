#pragma once

#include <Eigen/Core>
#include <dic/camera_rig.hpp>

#include "stereo/geometry.hpp"

/// What the uncertainty of a calibration does to positions.
namespace dic::stereo {

/// Number of parameters of a rig of two cameras, see rig_parameter_names().
inline constexpr int kRigParameters = 30;
/// Derivative of a position by the parameters of the rig, mm per unit of each.
using FromRig = Eigen::Matrix<double, 3, kRigParameters>;

/// Errors of positions by the covariance of a calibration.
class CalibrationErrors {
 public:
  /// Takes the first two cameras of a valid rig.
  explicit CalibrationErrors(const CameraRig& rig);

  /// False if the rig has no covariance.
  bool are_known() const { return factor_.cols() > 0; }
  /// How a position changes with the rig while its image points stay. position: in the axes of the left
  /// camera; from_px: its derivative by the image points, in any axes, which are those of the result.
  FromRig from_rig(const Vector3d& position, const FromPixels& from_px) const;
  /// Standard deviations along the axes of what changes so with the rig.
  Vector3d sigmas(const FromRig& from_rig) const;

 private:
  Lens left_, right_;
  Matrix3d rotation_;
  Vector3d translation_;
  /// Its product with its transpose is the covariance.
  Eigen::Matrix<double, kRigParameters, Eigen::Dynamic, Eigen::ColMajor, kRigParameters, kRigParameters>
      factor_;
};

}  // namespace dic::stereo
