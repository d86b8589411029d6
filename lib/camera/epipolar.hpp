#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <dic/camera_rig.hpp>

/// Geometry of two cameras.
namespace dic::camera {

using Eigen::Matrix3d;
using Eigen::Vector3d;

inline Matrix3d matrix_of(const std::array<double, 9>& rows) {
  return Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(rows.data());
}
inline Vector3d vector_of(const std::array<double, 3>& numbers) { return Vector3d(numbers.data()); }
inline void store(const Matrix3d& matrix, std::array<double, 9>& rows) {
  Eigen::Map<Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(rows.data()) = matrix;
}
inline void store(const Vector3d& vector, std::array<double, 3>& numbers) {
  Eigen::Map<Vector3d>(numbers.data()) = vector;
}

/// The matrix of v x.
inline Matrix3d cross_matrix(const Vector3d& v) {
  Matrix3d m;
  m << 0, -v[2], v[1], v[2], 0, -v[0], -v[1], v[0], 0;
  return m;
}

/// The rotation about a vector by its length, rad.
inline Matrix3d rotation_about(const Vector3d& turn) {
  const double angle = turn.norm();
  if (angle == 0) return Matrix3d::Identity();
  return Eigen::AngleAxisd(angle, turn / angle).toRotationMatrix();
}
/// The inverse of rotation_about.
inline Vector3d rotation_vector(const Matrix3d& rotation) {
  const Eigen::AngleAxisd turn(rotation);
  return turn.angle() * turn.axis();
}

/// E with x_right^T E x_left = 0 for the directions of one point.
inline Matrix3d essential_matrix(const RigCamera& right) {
  return cross_matrix(vector_of(right.translation_mm)) * matrix_of(right.rotation);
}

/// Directions (a, b, 1) of the same point in two cameras, and the focal lengths that make px of them.
struct EpipolarPair {
  Vector3d left, right;
  Eigen::Vector2d left_focal, right_focal;
};

/// NaN where a lens has no inverse.
inline EpipolarPair epipolar_pair(const Camera& left, const Camera& right, Camera::Point left_point,
                                  Camera::Point right_point) {
  const auto direction = [](const Camera& camera, Camera::Point point) {
    const Lens& lens = *camera.parameters().lens;
    const auto ideal = camera.undistort(point.x, point.y);
    return Vector3d((ideal.x - lens.cx) / lens.fx, (ideal.y - lens.cy) / lens.fy, 1);
  };
  const Lens &a = *left.parameters().lens, &b = *right.parameters().lens;
  return {direction(left, left_point), direction(right, right_point), {a.fx, a.fy}, {b.fx, b.fy}};
}

/// Distance of the right direction from the epipolar line of the left one, px of the right camera.
inline double line_distance(const Matrix3d& essential, const EpipolarPair& pair) {
  const Vector3d line = essential * pair.left;
  return pair.right.dot(line) / (line.head<2>().array() / pair.right_focal.array()).matrix().norm();
}

/// Distance in the space of both images' pixels, to first order.
inline double sampson_distance(const Matrix3d& essential, const EpipolarPair& pair) {
  const Vector3d in_right = essential * pair.left, in_left = essential.transpose() * pair.right;
  const double squares = (in_right.head<2>().array() / pair.right_focal.array()).square().sum() +
                         (in_left.head<2>().array() / pair.left_focal.array()).square().sum();
  return pair.right.dot(in_right) / std::sqrt(squares);
}

}  // namespace dic::camera
