#pragma once

#include <Eigen/Core>
#include <dic/camera_rig.hpp>
#include <dic/shared/surface_points.hpp>

/// A rig in the terms of <dic/shared/two_cameras.hpp>.
namespace dic::stereo {

/// Takes the first two cameras. Throws UsageError for a rig with problems.
CameraPair camera_pair_of(const CameraRig& rig);

/// Centre of the right camera, in the axes of the left one, mm.
inline Vector3 right_centre(const CameraPair& pair) {
  return -1.0 * (pair.rotation.transposed() * pair.translation);
}

/// A vector as one of Eigen's, in the same memory.
inline Eigen::Map<const Eigen::Vector3d> as_eigen(const Vector3& v) {
  return Eigen::Map<const Eigen::Vector3d>(&v.at[0][0]);
}
inline Vector3 from_eigen(const Eigen::Vector3d& v) { return vector3(v.x(), v.y(), v.z()); }
inline Matrix3 from_eigen(const Eigen::Matrix3d& m) {
  Matrix3 out;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) out(i, j) = m(i, j);
  return out;
}

}  // namespace dic::stereo
