#include "stereo/calibration_errors.hpp"

#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <cmath>

namespace dic::stereo {

CalibrationErrors::CalibrationErrors(const CameraRig& rig) {
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
  count_ = static_cast<int>(kRigParameters - first);
  factor_.resize(static_cast<std::size_t>(kRigParameters) * count_);
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
      factor_.data(), kRigParameters, count_) = sd.asDiagonal() * solver.eigenvectors().rightCols(count_) *
                                                solver.eigenvalues().tail(count_).cwiseSqrt().asDiagonal();
}

}  // namespace dic::stereo
