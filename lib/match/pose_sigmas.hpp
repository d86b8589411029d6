#pragma once

#include <Eigen/Core>
#include <dic/shared/pose.hpp>
#include <optional>
#include <vector>

namespace dic::match {

/// Pixels of a template after a fit, in groups of neighbours.
struct FittedPixels {
  static constexpr int kGroup = 64;  ///< pixels whose residuals may depend on each other
  struct Pixel {
    float xi = 0, eta = 0;        ///< template coordinates, px
    float t = 0, tx = 0, ty = 0;  ///< grey value minus the mean and gradient of the template
    float ix = 0, iy = 0;         ///< gradient of the image in template coordinates, divided by the gain
    float residual = 0;           ///< image minus model, divided by the gain
    float weight = 0;             ///< weight of the fit
  };
  std::vector<Pixel> pixels;  ///< the last group may be shorter
};

/// The uncertainty of a pose, from the residuals of its fit.
struct PoseScatter {
  static constexpr int kMost = pose::kGeometric;
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kMost, kMost>;
  using Vector = Eigen::Matrix<double, Eigen::Dynamic, 1, 0, kMost, 1>;
  Matrix covariance;  ///< of the free parameters, along the motions that are determined
  /// Motions that the pixels do not determine, orthonormal: free parameters times the rim, px.
  std::vector<Vector> loose;
};

/// Covariance of a pose by a jackknife over groups. Noise in the template adds to its gradients and makes the
/// pose seem better determined than it is; products of the template's and the image's gradients, whose noise
/// is independent, correct that. A motion whose information does not stand out from noise, or from errors of
/// interpolation, is `loose`. Empty if the equations have no
/// solution. rim: of the template, px.
std::optional<PoseScatter> scatter_of(const FittedPixels& fitted, pose::Freedom freedom, double rim);

/// Standard deviation of a loose motion, px at the template's rim, unless poses beside a fit tell it: steps
/// end where noise lets them.
constexpr double kLooseSigma = 1.5;

}  // namespace dic::match
