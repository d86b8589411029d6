#pragma once

#include <Eigen/Dense>
#include <array>
#include <dic/calibrate.hpp>
#include <vector>

namespace dic::calibration {

/// A pose: X_camera = rotation X + translation, mm.
struct Pose {
  Eigen::Matrix3d rotation = Eigen::Matrix3d::Identity();
  Eigen::Vector3d translation = Eigen::Vector3d::Zero();

  /// The pose that applies `first` and then this one.
  Pose after(const Pose& first) const {
    return {rotation * first.rotation, rotation * first.translation + translation};
  }
  Pose inverse() const { return {rotation.transpose(), -(rotation.transpose() * translation)}; }
};

/// A target that both cameras see: its points, and its pose in the axes of the left camera.
struct BundleView {
  std::array<CalibrationImage*, 2> images{};
  Pose target;
};

/// Two cameras and the targets that they see.
struct Bundle {
  std::array<Lens, 2> lenses;
  Pose right_from_left;
  std::vector<BundleView> views;
  std::vector<int> free;  ///< indices in camera::kLensParameters of the lens parameters to estimate
  double radius_mm = 0;   ///< radius of circles, whose centroids are not where their centres are; 0 = corners
};

struct BundleFit {
  /// Covariance of rig_parameter_names(2): zero rows for parameters that are fixed, infinite diagonals for
  /// those that the images leave open.
  Eigen::MatrixXd covariance;
  double rms = 0;  ///< root mean square length of the residuals, px
};

/// Position in the image of a point in the axes of the camera.
Camera::Point project(const Lens& lens, const Eigen::Vector3d& point);

/// Fits lenses, relative pose and poses of the targets to all points of both cameras by least squares
/// (Levenberg-Marquardt steps, the targets' poses eliminated by the Schur complement; Triggs et al., "Bundle
/// adjustment - a modern synthesis", 2000). Sets the residuals and `rms` of all images.
BundleFit adjust(Bundle& bundle);

}  // namespace dic::calibration
