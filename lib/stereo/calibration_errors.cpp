#include "stereo/calibration_errors.hpp"

#include <Eigen/Eigenvalues>
#include <cmath>

namespace dic::stereo {
namespace {

constexpr int kLens = 12, kPose = 6;
static_assert(2 * kLens + kPose == kRigParameters);

/// Derivatives of an image point, px.
struct PointSlopes {
  Eigen::Matrix<double, 2, kLens> by_lens;  ///< fx, fy, cx, cy, k1, k2, p1, p2, k3, k4, k5, k6
  Eigen::Matrix<double, 2, 3> by_position;  ///< position in the axes of the camera, per mm
};

PointSlopes slopes_at(const Lens& lens, const Vector3d& position) {
  const double a = position.x() / position.z(), b = position.y() / position.z();
  const double r2 = a * a + b * b, r4 = r2 * r2, r6 = r4 * r2;
  const double below = 1 + lens.k4 * r2 + lens.k5 * r4 + lens.k6 * r6;
  const double q = (1 + lens.k1 * r2 + lens.k2 * r4 + lens.k3 * r6) / below;
  const Vector2d ray(a, b), tangential1(2 * a * b, r2 + 2 * b * b), tangential2(r2 + 2 * a * a, 2 * a * b);
  const Vector2d bent = q * ray + lens.p1 * tangential1 + lens.p2 * tangential2;
  Matrix2d to_px;
  to_px << lens.fx, lens.skew, 0, lens.fy;

  PointSlopes slopes;
  slopes.by_lens.leftCols<4>() << bent.x(), 0, 1, 0, 0, bent.y(), 0, 1;
  Eigen::Matrix<double, 2, 8> by_distortion;
  by_distortion << ray * r2 / below, ray * r4 / below, tangential1, tangential2, ray * r6 / below,
      -ray * q * r2 / below, -ray * q * r4 / below, -ray * q * r6 / below;
  slopes.by_lens.rightCols<8>() = to_px * by_distortion;

  // dq / d(r^2), and the derivative of the bent ray by the straight one.
  const double dq =
      (lens.k1 + 2 * lens.k2 * r2 + 3 * lens.k3 * r4 - q * (lens.k4 + 2 * lens.k5 * r2 + 3 * lens.k6 * r4)) /
      below;
  Matrix2d by_ray = q * Matrix2d::Identity() + 2 * dq * ray * ray.transpose();
  Matrix2d of1, of2;
  of1 << 2 * b, 2 * a, 2 * a, 6 * b;
  of2 << 6 * a, 2 * b, 2 * b, 2 * a;
  by_ray += lens.p1 * of1 + lens.p2 * of2;
  Eigen::Matrix<double, 2, 3> ray_by_position;
  ray_by_position << 1, 0, -a, 0, 1, -b;
  slopes.by_position = to_px * by_ray * ray_by_position / position.z();
  return slopes;
}

Eigen::Matrix<double, 3, kPose> position_by_pose(const Vector3d& turned) {
  Eigen::Matrix<double, 3, kPose> slopes;
  slopes << 0, turned.z(), -turned.y(), 1, 0, 0,  //
      -turned.z(), 0, turned.x(), 0, 1, 0,        //
      turned.y(), -turned.x(), 0, 0, 0, 1;
  return slopes;
}

}  // namespace

CalibrationErrors::CalibrationErrors(const CameraRig& rig)
    : left_(*rig.cameras[0].camera.lens),
      right_(*rig.cameras[1].camera.lens),
      rotation_(
          Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(rig.cameras[1].rotation.data())),
      translation_(rig.cameras[1].translation_mm.data()) {
  factor_.resize(Eigen::NoChange, 0);
  constexpr std::size_t kNumbers = std::size_t{kRigParameters} * kRigParameters;
  if (rig.covariance.size() != kNumbers) return;
  using Covariance = Eigen::Matrix<double, kRigParameters, kRigParameters>;
  const Eigen::Map<const Covariance> covariance(rig.covariance.data());
  // Parameters differ in size by orders of magnitude: their correlations are factorized. Those that the
  // calibration did not estimate have no variance.
  const Eigen::Matrix<double, kRigParameters, 1> sd = covariance.diagonal().cwiseSqrt();
  const Eigen::Matrix<double, kRigParameters, 1> inverse =
      sd.unaryExpr([](double s) { return s > 0 ? 1 / s : 0; });
  const Eigen::SelfAdjointEigenSolver<Covariance> solver(inverse.asDiagonal() * covariance *
                                                         inverse.asDiagonal());
  constexpr double kNothing = 1e-12;
  const auto first = (solver.eigenvalues().array() <= kNothing).count();  // they ascend
  const auto kept = kRigParameters - first;
  factor_ = sd.asDiagonal() * solver.eigenvectors().rightCols(kept) *
            solver.eigenvalues().tail(kept).cwiseSqrt().asDiagonal();
}

FromRig CalibrationErrors::from_rig(const Vector3d& position, const FromPixels& from_px) const {
  const Vector3d turned = rotation_ * position;
  const PointSlopes left = slopes_at(left_, position), right = slopes_at(right_, turned + translation_);
  FromRig out;
  out << -from_px.leftCols<2>() * left.by_lens, -from_px.rightCols<2>() * right.by_lens,
      -from_px.rightCols<2>() * right.by_position * position_by_pose(turned);
  return out;
}

Vector3d CalibrationErrors::sigmas(const FromRig& from_rig) const {
  return (from_rig * factor_).rowwise().norm();
}

}  // namespace dic::stereo
