#pragma once

#include <Eigen/Core>
#include <dic/camera.hpp>
#include <dic/camera_rig.hpp>

/// Rays of two cameras: where they meet, how far they miss each other, and what noise in the images does.
namespace dic::stereo {

using Eigen::Matrix2d;
using Eigen::Matrix3d;
using Eigen::Vector2d;
using Eigen::Vector3d;
/// Derivative of a position by the image points (left x, left y, right x, right y), mm per px.
using FromPixels = Eigen::Matrix<double, 3, 4>;
/// Covariance of these four, px^2.
using PixelCovariance = Eigen::Matrix4d;

/// An image point as a direction (a, b, 1) in the axes of its camera.
struct Sight {
  Vector2d direction;  ///< NaN where the lens model has no inverse
  Matrix2d from_px;    ///< derivative by the image point

  bool exists() const { return direction.allFinite(); }
};

/// The position in space at which the rays of two image points meet.
struct Meeting {
  Vector3d position;         ///< position in the axes of the left camera, mm
  FromPixels from_px;        ///< derivative of the position
  Eigen::Vector4d residual;  ///< image points minus projections of the position, px
  bool exists = false;       ///< false if the rays do not meet in front of both cameras
};

/// Signed distance of the right point from the epipolar line of the left one.
struct EpipolarDistance {
  double px = 0;              ///< px of the right image
  Eigen::Vector4d by_pixels;  ///< derivative by the image points
};

/// A pair of cameras.
class Geometry {
 public:
  /// Takes the first two cameras of the rig.
  explicit Geometry(const CameraRig& rig);

  Sight left(double x, double y) const { return sight(left_, x, y); }
  Sight right(double x, double y) const { return sight(right_, x, y); }
  /// The position whose projections are closest to both points, in units of their standard deviations.
  /// sigmas: of (left x, left y, right x, right y), px; 0 = exact.
  Meeting meet(const Sight& left, const Sight& right, const Eigen::Vector4d& sigmas) const;
  EpipolarDistance epipolar(const Sight& left, const Sight& right) const;
  /// Centre of the right camera, in the axes of the left one, mm.
  Vector3d right_centre() const { return -rotation_.transpose() * translation_; }
  /// Image point of a position, px; NaN behind the camera.
  Vector2d project_left(const Vector3d& position) const;
  Vector2d project_right(const Vector3d& position) const;

 private:
  static Sight sight(const Camera& camera, double x, double y);

  Camera left_, right_;
  Matrix3d rotation_, essential_;
  Vector3d translation_;
};

}  // namespace dic::stereo
