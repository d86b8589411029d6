#pragma once

#include <dic/camera_rig.hpp>
#include <dic/shared/surface_points.hpp>
#include <vector>

/// Standard deviations of positions that come from the uncertainty of a calibration.
namespace dic::stereo {

/// The covariance of a calibration, factorized for CalibrationTerms.
class CalibrationErrors {
 public:
  /// Takes the first two cameras of a valid rig.
  explicit CalibrationErrors(const CameraRig& rig);

  /// False if the rig has no covariance.
  bool are_known() const { return count_ > 0; }
  const std::vector<double>& factor() const { return factor_; }
  /// Refers to this object.
  CalibrationTerms terms() const { return {factor_.data(), count_}; }

 private:
  std::vector<double> factor_;
  int count_ = 0;
};

}  // namespace dic::stereo
