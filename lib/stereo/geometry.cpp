#include "stereo/geometry.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Geometry>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <limits>

namespace dic::stereo {
namespace {

/// An exact point counts as one with this standard deviation, in those of the others.
constexpr double kExact = 1e-4;

Matrix3d matrix_of(const std::array<double, 9>& rows) {
  return Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(rows.data());
}

/// (x, y) / z and its derivative by the position.
struct Projection {
  Vector2d point;
  Eigen::Matrix<double, 2, 3> slope;

  explicit Projection(const Vector3d& p) : point(p.x() / p.z(), p.y() / p.z()) {
    slope << 1 / p.z(), 0, -point.x() / p.z(), 0, 1 / p.z(), -point.y() / p.z();
  }
};

/// Depth along the left ray at which it is nearest to the right ray, for a start.
double first_depth(const Vector3d& left_in_right, const Vector3d& right, const Vector3d& translation) {
  const Vector3d across = right.cross(left_in_right);
  return -across.dot(right.cross(translation)) / across.squaredNorm();
}

const CameraParameters& left_of_checked(const CameraRig& rig) {
  for (const std::string& problem : rig.validate()) throw UsageError(problem);
  return rig.cameras[0].camera;
}

Vector2d project(const Camera& camera, const Vector3d& position) {
  if (!(position.z() > 0)) return Vector2d::Constant(std::numeric_limits<double>::quiet_NaN());
  const Lens& lens = *camera.parameters().lens;
  const Camera::Point seen = camera.distort(lens.fx * position.x() / position.z() + lens.cx,
                                            lens.fy * position.y() / position.z() + lens.cy);
  return {seen.x, seen.y};
}

}  // namespace

Geometry::Geometry(const CameraRig& rig)
    : left_(left_of_checked(rig)),
      right_(rig.cameras[1].camera),
      rotation_(matrix_of(rig.cameras[1].rotation)),
      translation_(rig.cameras[1].translation_mm.data()) {
  Matrix3d cross;
  cross << 0, -translation_.z(), translation_.y(), translation_.z(), 0, -translation_.x(), -translation_.y(),
      translation_.x(), 0;
  essential_ = cross * rotation_;
}

Sight Geometry::sight(const Camera& camera, double x, double y) {
  const Lens& lens = *camera.parameters().lens;
  const auto [ideal, jacobian] = camera.undistort_with_jacobian(x, y);
  Sight sight;
  sight.direction = {(ideal.x - lens.cx) / lens.fx, (ideal.y - lens.cy) / lens.fy};
  sight.from_px << jacobian.xx / lens.fx, jacobian.xy / lens.fx, jacobian.yx / lens.fy, jacobian.yy / lens.fy;
  return sight;
}

Meeting Geometry::meet(const Sight& left, const Sight& right, const Eigen::Vector4d& sigmas) const {
  Meeting out;
  const double floor = std::max(sigmas.maxCoeff(), 1e-6) * kExact;
  const Eigen::Vector4d sd = sigmas.cwiseMax(floor);
  // Residuals in px, in units of their standard deviations.
  const Matrix2d left_px = left.from_px.inverse(), right_px = right.from_px.inverse();
  const Eigen::Vector4d weights = sd.cwiseInverse();
  Vector3d p = left.direction.homogeneous();
  p *= first_depth(rotation_ * p, right.direction.homogeneous(), translation_);
  Eigen::Matrix<double, 4, 3> slope;
  Eigen::LLT<Matrix3d> normal;
  constexpr int kSteps = 3;            // the start is nearly right: each step squares its error
  constexpr double kExactStep = 1e-6;  // relative: its square is below the rounding
  bool is_exact = false;
  for (int step = 0; step <= kSteps; ++step) {
    const Vector3d in_right = rotation_ * p + translation_;
    if (!(p.z() > 0 && in_right.z() > 0)) return out;
    const Projection l(p), r(in_right);
    out.residual << left_px * (left.direction - l.point), right_px * (right.direction - r.point);
    slope << left_px * l.slope, right_px * r.slope * rotation_;
    slope = weights.asDiagonal() * slope;
    normal.compute(slope.transpose() * slope);
    if (is_exact || step == kSteps) break;
    const Vector3d change = normal.solve(slope.transpose() * (weights.asDiagonal() * out.residual));
    p += change;
    is_exact = change.squaredNorm() < kExactStep * kExactStep * p.squaredNorm();
  }
  out.position = p;
  out.from_px = normal.solve(slope.transpose() * weights.asDiagonal());
  out.exists = out.position.allFinite() && out.from_px.allFinite();
  return out;
}

EpipolarDistance Geometry::epipolar(const Sight& left, const Sight& right) const {
  const Vector3d line = essential_ * left.direction.homogeneous();
  const Vector3d back = essential_.transpose() * right.direction.homogeneous();
  const Vector2d by_right = right.from_px.transpose() * line.head<2>();
  const Vector2d by_left = left.from_px.transpose() * back.head<2>();
  const double length = by_right.norm();
  EpipolarDistance out;
  out.px = line.dot(right.direction.homogeneous()) / length;
  out.by_pixels << by_left / length, by_right / length;
  return out;
}

Vector2d Geometry::project_left(const Vector3d& position) const { return project(left_, position); }
Vector2d Geometry::project_right(const Vector3d& position) const {
  return project(right_, rotation_ * position + translation_);
}

}  // namespace dic::stereo
