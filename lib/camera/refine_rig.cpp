#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/refine_rig.hpp>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "camera/epipolar.hpp"
#include "core/dense_solvers.hpp"

namespace dic {
namespace {

using camera::EpipolarPair;
using Eigen::Matrix3d;
using Eigen::Vector3d;
using Vector5d = Eigen::Matrix<double, 5, 1>;
using Matrix5d = Eigen::Matrix<double, 5, 5>;

constexpr double kDegrees = 180 / std::numbers::pi;
constexpr double kPrior = 0.5 / kDegrees;  // rad, standard deviation of a rig's change since its calibration
constexpr std::size_t kLeastPairs = 20;

/// Rotation and direction of a rig, changed by five small angles, rad.
struct Orientation {
  Matrix3d rotation;
  Vector3d direction;  ///< unit vector along the translation

  Orientation changed(const Vector5d& by) const {
    Matrix3d axes;  // the direction and two vectors perpendicular to it
    axes.col(0) = direction;
    axes.col(1) = direction.unitOrthogonal();
    axes.col(2) = direction.cross(axes.col(1));
    const Vector3d turned = direction + by[3] * axes.col(1) + by[4] * axes.col(2);
    return {camera::rotation_about(by.head<3>()) * rotation, turned.normalized()};
  }
};

std::vector<double> sampson_distances(const Orientation& at, const std::vector<EpipolarPair>& pairs) {
  const Matrix3d essential = camera::cross_matrix(at.direction) * at.rotation;
  std::vector<double> distances;
  distances.reserve(pairs.size());
  for (const EpipolarPair& pair : pairs) distances.push_back(camera::sampson_distance(essential, pair));
  return distances;
}

/// 1.4826 times the median of the sizes: the standard deviation about 0 of what is mostly normal.
double robust_deviation(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return 1.4826 * *middle;
}

double robust_epipolar(const Orientation& at, const std::vector<EpipolarPair>& pairs) {
  const Matrix3d essential = camera::cross_matrix(at.direction) * at.rotation;
  std::vector<double> distances;
  for (const EpipolarPair& pair : pairs) distances.push_back(camera::line_distance(essential, pair));
  return robust_deviation(std::move(distances));
}

/// The normal equations of one step, weighted so that outliers do not count (Tukey's biweight).
struct Step {
  Matrix5d normal = Matrix5d::Zero();
  Vector5d right = Vector5d::Zero();
  double deviation = 0;
  std::size_t counted = 0;

  Step(const Orientation& at, const std::vector<EpipolarPair>& pairs) {
    constexpr double kChange = 1e-6;  // rad
    constexpr double kCut = 4.685, kLeastDeviation = 1e-6;
    const std::vector<double> distances = sampson_distances(at, pairs);
    std::array<std::vector<double>, 5> above, below;
    for (int k = 0; k < 5; ++k) {
      above[k] = sampson_distances(at.changed(kChange * Vector5d::Unit(k)), pairs);
      below[k] = sampson_distances(at.changed(-kChange * Vector5d::Unit(k)), pairs);
    }
    deviation = std::max(robust_deviation(distances), kLeastDeviation);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const double far = distances[i] / (kCut * deviation);
      if (!(std::abs(far) < 1)) continue;
      const double weight = std::pow(1 - far * far, 2) / (deviation * deviation);
      Vector5d slope;
      for (int k = 0; k < 5; ++k) slope[k] = (above[k][i] - below[k][i]) / (2 * kChange);
      normal += weight * slope * slope.transpose();
      right -= weight * slope * distances[i];
      ++counted;
    }
  }
};

std::vector<EpipolarPair> pairs_of(const CameraRig& rig, std::span<const Camera::Point> left,
                                   std::span<const Camera::Point> right) {
  const Camera first(rig.cameras[0].camera), second(rig.cameras[1].camera);
  std::vector<EpipolarPair> pairs;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const EpipolarPair pair = camera::epipolar_pair(first, second, left[i], right[i]);
    if (pair.left.allFinite() && pair.right.allFinite()) pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace

double epipolar_distance(const Camera& left, const Camera& right, const RigCamera& pose,
                         Camera::Point left_point, Camera::Point right_point) {
  return camera::line_distance(camera::essential_matrix(pose),
                               camera::epipolar_pair(left, right, left_point, right_point));
}

RigCorrection refine_rig(const CameraRig& rig, std::span<const Camera::Point> left,
                         std::span<const Camera::Point> right) {
  constexpr int kMostSteps = 50;
  constexpr double kLastStep = 1e-9;  // rad
  if (const auto problems = rig.validate(); !problems.empty()) throw UsageError(problems.front());
  if (rig.cameras.size() != 2) throw UsageError("Only a rig of two cameras can be refined from matches.");
  if (left.size() != right.size())
    throw UsageError("Each point of the left image needs its point in the right one: the lists differ.");
  const std::vector<EpipolarPair> pairs = pairs_of(rig, left, right);
  if (pairs.size() < kLeastPairs)
    throw UsageError("The orientation of the cameras needs at least " + std::to_string(kLeastPairs) +
                     " matches, but there are " + std::to_string(pairs.size()) + ".");
  const Matrix3d rotation = camera::matrix_of(rig.cameras[1].rotation);
  const Vector3d translation = camera::vector_of(rig.cameras[1].translation_mm);
  const Orientation start{rotation, translation.normalized()};
  Orientation now = start;
  Vector5d total = Vector5d::Zero();
  Matrix5d posterior;
  std::size_t counted = 0;
  for (int i = 0; i < kMostSteps; ++i) {
    const Step step(now, pairs);
    posterior = step.normal + Matrix5d::Identity() / (kPrior * kPrior);
    const Vector5d change = core::solve_symmetric(posterior, step.right - total / (kPrior * kPrior));
    now = now.changed(change);
    total += change;
    counted = step.counted;
    if (change.norm() < kLastStep) break;
  }
  const Matrix5d covariance = core::inverse_of(posterior);
  RigCorrection result;
  result.rig = rig;
  camera::store(now.rotation, result.rig.cameras[1].rotation);
  camera::store(translation.norm() * now.direction, result.rig.cameras[1].translation_mm);
  const Vector3d turn = camera::rotation_vector(now.rotation * rotation.transpose());
  for (int k = 0; k < 3; ++k) {
    result.rotation_deg[k] = turn[k] * kDegrees;
    result.sigma_rotation_deg[k] = std::sqrt(covariance(k, k)) * kDegrees;
  }
  result.direction_deg =
      std::atan2(start.direction.cross(now.direction).norm(), start.direction.dot(now.direction)) * kDegrees;
  result.sigma_direction_deg = std::sqrt(covariance(3, 3) + covariance(4, 4)) * kDegrees;
  result.epipolar_before_px = robust_epipolar(start, pairs);
  result.epipolar_after_px = result.rig.epipolar_px = robust_epipolar(now, pairs);
  result.points = counted;
  return result;
}

}  // namespace dic
