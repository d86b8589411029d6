#include "stereo/sigma_check.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <dic/camera.hpp>
#include <dic/refine_rig.hpp>
#include <numbers>

#include "stereo/epipolar_check.hpp"

namespace dic::stereo {
namespace {

constexpr std::size_t kFewPoints = 300, kMostPoints = 5000;
/// Points that the assumption of right predictions counts as. Subsets of neighbours overlap, so that they
/// tell less than independent points would.
constexpr double kPrior = 100;
/// Largest square of a distance over its expected variance; larger ones count as this: wrong matches.
constexpr double kLargestSquare = 16;
/// Factor that the variance keeps: errors along the epipolar lines may be a little larger than those across.
constexpr double kMargin = 1.05;
/// Quantile of both features below and above which they count as this quantile.
constexpr double kTail = 0.02;

/// Distances of a rig's points from their epipolar lines.
class Distances {
 public:
  explicit Distances(const CameraRig& rig)
      : left_(rig.cameras[0].camera), right_(rig.cameras[1].camera), pose_(rig.cameras[1]) {}

  EpipolarSample sample(const Field& field, std::size_t k) const {
    constexpr double kStep = 0.5;  // px
    const Grid& grid = field.grid();
    const int i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
    const Camera::Point left{double(grid.x(i)), double(grid.y(j))};
    const double x = left.x + field.u[k], y = left.y + field.v[k];
    const auto distance = [&](double dx, double dy) {
      return epipolar_distance(left_, right_, pose_, left, {x + dx, y + dy});
    };
    const double by_x = (distance(kStep, 0) - distance(-kStep, 0)) / (2 * kStep),
                 by_y = (distance(0, kStep) - distance(0, -kStep)) / (2 * kStep);
    return {2.0 * i / grid.nx - 1, 2.0 * j / grid.ny - 1, distance(0, 0),
            std::hypot(by_x * double(field.sigma_u[k]), by_y * double(field.sigma_v[k]))};
  }

 private:
  Camera left_, right_;
  RigCamera pose_;
};

/// Logarithms of a feature, as a term of the model: about their median, without their tails.
class Feature {
 public:
  explicit Feature(std::vector<double> logarithms) {
    const auto quantile = [&](double share) {
      const auto at = logarithms.begin() +
                      static_cast<std::ptrdiff_t>(share * static_cast<double>(logarithms.size() - 1));
      std::ranges::nth_element(logarithms, at);
      return *at;
    };
    least_ = quantile(kTail), middle_ = quantile(0.5), most_ = quantile(1 - kTail);
  }
  double term(double logarithm) const { return std::clamp(logarithm, least_, most_) - middle_; }

 private:
  double least_, middle_, most_;
};

double log_sigma(const Field& field, std::size_t k) {
  return std::log(std::max(std::hypot(double(field.sigma_u[k]), double(field.sigma_v[k])), 1e-9));
}
double log_misfit(const Field& field, std::size_t k) {
  return std::log(std::max(1 - double(field.zncc[k]), 1e-9));
}

/// Some of the points that are `ok`. Multiples of the golden ratio spread them evenly over rows and columns.
std::vector<std::size_t> some_points(const Field& field) {
  std::vector<std::size_t> all, some;
  for (std::size_t k = 0; k < field.status.size(); ++k)
    if (field.status[k] == Status::ok) all.push_back(k);
  if (all.size() <= kMostPoints) return all;
  for (std::size_t n = 0; n < kMostPoints; ++n) {
    const double multiple = static_cast<double>(n) * std::numbers::phi;
    const double part = multiple - std::floor(multiple);
    some.push_back(all[static_cast<std::size_t>(part * static_cast<double>(all.size()))]);
  }
  return some;
}

/// Logarithm of the ratio of observed to predicted variance.
class RatioModel {
 public:
  RatioModel(const Field& field, const std::vector<std::size_t>& points, const Eigen::ArrayXd& squares)
      : sigma_(logarithms(field, points, log_sigma)), misfit_(logarithms(field, points, log_misfit)) {
    const auto count = static_cast<Eigen::Index>(points.size());
    Eigen::Matrix<double, Eigen::Dynamic, 3> terms(count, 3);
    for (Eigen::Index n = 0; n < count; ++n)
      terms.row(n) = terms_at(field, points[static_cast<std::size_t>(n)]).transpose();
    // The likelihood of normal errors, by Fisher's scoring.
    const Eigen::Matrix3d normal = terms.transpose() * terms + kPrior * Eigen::Matrix3d::Identity();
    const Eigen::LDLT<Eigen::Matrix3d> solver(normal);
    constexpr int kRounds = 30;
    for (int round = 0; round < kRounds; ++round) {
      const Eigen::ArrayXd expected = (terms * powers_).array().exp();
      const Eigen::VectorXd rest = (squares / expected).min(kLargestSquare) - 1;
      const Eigen::Vector3d step = solver.solve(terms.transpose() * rest - kPrior * powers_);
      powers_ += step.cwiseMax(-1).cwiseMin(1);
    }
  }

  double at(const Field& field, std::size_t k) const { return powers_.dot(terms_at(field, k)); }

 private:
  template <typename Of>
  static std::vector<double> logarithms(const Field& field, const std::vector<std::size_t>& points, Of of) {
    std::vector<double> values;
    for (const std::size_t k : points) values.push_back(of(field, k));
    return values;
  }
  Eigen::Vector3d terms_at(const Field& field, std::size_t k) const {
    return {1, sigma_.term(log_sigma(field, k)), misfit_.term(log_misfit(field, k))};
  }

  Feature sigma_, misfit_;
  Eigen::Vector3d powers_ = Eigen::Vector3d::Zero();
};

}  // namespace

std::vector<float> sigma_factors(const Field& across, const CameraRig& rig, core::ThreadPool& pool) {
  std::vector<float> factors(across.status.size(), 1);
  const std::vector<std::size_t> points = some_points(across);
  if (points.size() < kFewPoints) return factors;
  const Distances distances(rig);
  std::vector<EpipolarSample> samples(points.size());
  core::for_each_index(pool, std::ssize(points),
                       [&](std::int64_t n) { samples[n] = distances.sample(across, points[n]); });
  const CommonDistance common = common_distance(samples);
  Eigen::ArrayXd squares(std::ssize(points));
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const EpipolarSample& sample = samples[n];
    const double ratio = (sample.px - common.at(sample.x, sample.y)) / std::max(sample.sigma, 1e-9);
    squares[static_cast<Eigen::Index>(n)] = std::isfinite(ratio) ? ratio * ratio : 1;
  }
  const RatioModel model(across, points, squares);
  core::for_each_index(pool, std::ssize(factors), [&](std::int64_t k) {
    if (has_values(across.status[k]))
      factors[k] = static_cast<float>(std::min(std::sqrt(kMargin * std::exp(model.at(across, k))), 1.0));
  });
  return factors;
}

void multiply_sigmas(Field& field, std::span<const float> factors) {
  for (std::size_t k = 0; k < factors.size(); ++k)
    field.sigma_u[k] *= factors[k], field.sigma_v[k] *= factors[k];
}

}  // namespace dic::stereo
