#include "calibrate/bundle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "calibrate/target_images.hpp"
#include "camera/epipolar.hpp"
#include "camera/lens.hpp"
#include "core/dense_solvers.hpp"

namespace dic::calibration {
namespace {

using camera::kLensParameters;
using Eigen::Matrix3d;
using Eigen::MatrixXd;
using Eigen::Vector2d;
using Eigen::Vector3d;
using Eigen::VectorXd;
using Vector6d = Eigen::Matrix<double, 6, 1>;
using Matrix6d = Eigen::Matrix<double, 6, 6>;

constexpr int kLens = static_cast<int>(camera::kEstimableParameters);
constexpr int kPose = 6;  // a rotation vector and a translation

/// The place at which a camera sees a point, and its derivatives by the point and by the parameters of the
/// lens.
struct Seen {
  Vector2d place;
  Eigen::Matrix<double, 2, 3> by_point;
  Eigen::Matrix<double, 2, kLens> by_lens;
};

Seen see(const Lens& l, const Vector3d& p) {
  const double a = p[0] / p[2], b = p[1] / p[2], r2 = a * a + b * b;
  const camera::Mapped at = camera::distort(l, {l.fx * a + l.cx, l.fy * b + l.cy});
  Seen seen;
  seen.place = {at.point.x, at.point.y};
  Eigen::Matrix2d by_direction;
  by_direction << at.jacobian.xx * l.fx, at.jacobian.xy * l.fy, at.jacobian.yx * l.fx, at.jacobian.yy * l.fy;
  Eigen::Matrix<double, 2, 3> direction_by_point;
  direction_by_point << 1, 0, -a, 0, 1, -b;
  seen.by_point = by_direction * direction_by_point / p[2];
  const double below = 1 + r2 * (l.k4 + r2 * (l.k5 + r2 * l.k6));
  const double q = (1 + r2 * (l.k1 + r2 * (l.k2 + r2 * l.k3))) / below;
  const double seen_b = (at.point.y - l.cy) / l.fy, seen_a = (at.point.x - l.cx - l.skew * seen_b) / l.fx;
  Eigen::Matrix<double, 2, kLens - 4> by_distortion;  // of A and B
  const auto radial = [&](double dq) { return Vector2d(a * dq, b * dq); };
  by_distortion.col(0) = radial(r2 / below);
  by_distortion.col(1) = radial(r2 * r2 / below);
  by_distortion.col(2) = Vector2d(2 * a * b, r2 + 2 * b * b);
  by_distortion.col(3) = Vector2d(r2 + 2 * a * a, 2 * a * b);
  by_distortion.col(4) = radial(r2 * r2 * r2 / below);
  by_distortion.col(5) = radial(-q * r2 / below);
  by_distortion.col(6) = radial(-q * r2 * r2 / below);
  by_distortion.col(7) = radial(-q * r2 * r2 * r2 / below);
  seen.by_lens.leftCols<4>() << seen_a, 0, 1, 0, 0, seen_b, 0, 1;
  seen.by_lens.rightCols<kLens - 4>().row(0) = l.fx * by_distortion.row(0) + l.skew * by_distortion.row(1);
  seen.by_lens.rightCols<kLens - 4>().row(1) = l.fy * by_distortion.row(1);
  return seen;
}

Vector3d in_camera(const Bundle& bundle, const Pose& target, int side, double x, double y) {
  const Vector3d left = target.rotation * Vector3d(x, y, 0) + target.translation;
  return side == 0 ? left
                   : Vector3d(bundle.right_from_left.rotation * left + bundle.right_from_left.translation);
}

/// The vector from the image of a circle's centre to the centroid of the circle's image, which perspective
/// and distortion move apart.
Vector2d centroid_offset(const Bundle& bundle, const Pose& target, int side, const TargetPoint& p) {
  constexpr int kCorners = 24;  // an inscribed polygon has the centroid of its ellipse
  const Lens& lens = bundle.lenses[side];
  const auto centre = project(lens, in_camera(bundle, target, side, p.mm_x, p.mm_y));
  const auto corner = [&](int k) {
    const double angle = 2 * std::numbers::pi * k / kCorners;
    const auto at = project(lens, in_camera(bundle, target, side, p.mm_x + bundle.radius_mm * std::cos(angle),
                                            p.mm_y + bundle.radius_mm * std::sin(angle)));
    return Vector2d(at.x - centre.x, at.y - centre.y);
  };
  Vector2d sum = Vector2d::Zero();
  double area = 0;
  Vector2d last = corner(kCorners - 1);
  for (int k = 0; k < kCorners; ++k) {
    const Vector2d next = corner(k);
    const double part = last[0] * next[1] - last[1] * next[0];
    sum += part * (last + next) / 3;
    area += part;
    last = next;
  }
  return area == 0 ? Vector2d::Zero() : Vector2d(sum / area);
}

/// For each view and camera the offsets of its points.
using Offsets = std::vector<std::array<std::vector<Vector2d>, 2>>;

Offsets offsets_of(const Bundle& bundle) {
  Offsets offsets(bundle.views.size());
  for (std::size_t v = 0; v < bundle.views.size(); ++v)
    for (int side = 0; side < 2; ++side)
      for (const TargetPoint& p : bundle.views[v].images[side]->points)
        offsets[v][side].push_back(bundle.radius_mm > 0
                                       ? centroid_offset(bundle, bundle.views[v].target, side, p)
                                       : Vector2d::Zero());
  return offsets;
}

/// Calls body(side, index of the point, residual (2)).
template <typename Body>
void each_residual(const Bundle& bundle, const Offsets& offsets, std::size_t v, const Body& body) {
  const BundleView& view = bundle.views[v];
  for (int side = 0; side < 2; ++side)
    for (std::size_t k = 0; k < view.images[side]->points.size(); ++k) {
      const TargetPoint& p = view.images[side]->points[k];
      const auto at = project(bundle.lenses[side], in_camera(bundle, view.target, side, p.mm_x, p.mm_y));
      body(side, k, Vector2d(p.x - at.x - offsets[v][side][k][0], p.y - at.y - offsets[v][side][k][1]));
    }
}

double squares_of(const Bundle& bundle, const Offsets& offsets) {
  double sum = 0;
  for (std::size_t v = 0; v < bundle.views.size(); ++v)
    each_residual(bundle, offsets, v, [&](int, std::size_t, const Vector2d& r) { sum += r.squaredNorm(); });
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

/// The normal equations at a bundle. The common parameters are those of rig_parameter_names(2).
struct Normal {
  static constexpr int kCommon = 2 * kLens + kPose;
  MatrixXd common = MatrixXd::Zero(kCommon, kCommon);
  VectorXd right = VectorXd::Zero(kCommon);
  struct View {
    Matrix6d own = Matrix6d::Zero();
    Eigen::Matrix<double, kCommon, 6> mixed = Eigen::Matrix<double, kCommon, 6>::Zero();
    Vector6d right = Vector6d::Zero();
  };
  std::vector<View> views;

  Normal(const Bundle& bundle, const Offsets& offsets) : views(bundle.views.size()) {
    for (std::size_t v = 0; v < views.size(); ++v)
      each_residual(bundle, offsets, v, [&](int side, std::size_t k, const Vector2d& residual) {
        add(bundle, v, side, bundle.views[v].images[side]->points[k], residual);
      });
  }

  void add(const Bundle& bundle, std::size_t v, int side, const TargetPoint& p, const Vector2d& residual) {
    const Pose &target = bundle.views[v].target, &relative = bundle.right_from_left;
    const Vector3d turned = target.rotation * Vector3d(p.mm_x, p.mm_y, 0);
    const Seen seen = see(bundle.lenses[side], in_camera(bundle, target, side, p.mm_x, p.mm_y));
    Eigen::Matrix<double, 2, kCommon> by_common = Eigen::Matrix<double, 2, kCommon>::Zero();
    by_common.middleCols<kLens>(side * kLens) = seen.by_lens;
    Eigen::Matrix<double, 2, 3> by_left = seen.by_point;  // by the point in the left camera's axes
    if (side == 1) {
      const Vector3d rotated = relative.rotation * (turned + target.translation);
      by_common.middleCols<3>(2 * kLens) = -seen.by_point * camera::cross_matrix(rotated);
      by_common.rightCols<3>() = seen.by_point;
      by_left = seen.by_point * relative.rotation;
    }
    Eigen::Matrix<double, 2, 6> by_view;
    by_view << -by_left * camera::cross_matrix(turned), by_left;
    View& view = views[v];
    common.noalias() += by_common.transpose() * by_common;
    right.noalias() += by_common.transpose() * residual;
    view.own.noalias() += by_view.transpose() * by_view;
    view.mixed.noalias() += by_common.transpose() * by_view;
    view.right.noalias() += by_view.transpose() * residual;
  }

  /// The matrix of the free common parameters with all views eliminated, and its right side. damping: added
  /// to all diagonals, as a share of them.
  void reduce(const std::vector<int>& free, double damping, MatrixXd& matrix, VectorXd& side) const {
    const int n = static_cast<int>(free.size());
    MatrixXd full = common;
    full.diagonal() *= 1 + damping;
    VectorXd reduced = right;
    for (const View& view : views) {
      Matrix6d own = view.own;
      own.diagonal() *= 1 + damping;
      Eigen::Matrix<double, 6, kCommon + 1> sides;
      sides << view.mixed.transpose(), view.right;
      const MatrixXd solved = view.mixed * core::solve_symmetric(own, sides);
      full -= solved.leftCols<kCommon>();
      reduced -= solved.rightCols<1>();
    }
    matrix.resize(n, n), side.resize(n);
    for (int i = 0; i < n; ++i) {
      side[i] = reduced[free[i]];
      for (int j = 0; j < n; ++j) matrix(i, j) = full(free[i], free[j]);
    }
  }
};

/// Positions in the common parameters of those that are estimated.
std::vector<int> free_common(const Bundle& bundle) {
  std::vector<int> free;
  for (int side = 0; side < 2; ++side)
    for (const int k : bundle.free) free.push_back(side * kLens + k);
  for (int k = 0; k < kPose; ++k) free.push_back(2 * kLens + k);
  return free;
}

void move(Pose& pose, const Vector6d& step) {
  pose.rotation = camera::rotation_about(step.head<3>()) * pose.rotation;
  pose.translation += step.tail<3>();
}

/// The bundle after a damped Gauss-Newton step.
Bundle stepped(const Bundle& bundle, const Normal& normal, const std::vector<int>& free, double damping) {
  MatrixXd matrix;
  VectorXd side;
  normal.reduce(free, damping, matrix, side);
  // Scaled to a diagonal of ones: focal lengths and k3 differ by many orders of magnitude.
  const VectorXd scale =
      matrix.diagonal().cwiseMax(std::numeric_limits<double>::min()).cwiseSqrt().cwiseInverse();
  const MatrixXd scaled = scale.asDiagonal() * matrix * scale.asDiagonal();
  const VectorXd solved = scale.cwiseProduct(core::solve_symmetric(scaled, scale.cwiseProduct(side)).col(0));
  VectorXd step = VectorXd::Zero(Normal::kCommon);
  for (std::size_t i = 0; i < free.size(); ++i) step[free[i]] = solved[static_cast<Eigen::Index>(i)];
  Bundle next = bundle;
  for (int camera = 0; camera < 2; ++camera)
    for (int k = 0; k < kLens; ++k)
      next.lenses[camera].*kLensParameters[static_cast<std::size_t>(k)].value += step[camera * kLens + k];
  move(next.right_from_left, step.tail<6>());
  for (std::size_t v = 0; v < next.views.size(); ++v) {
    Matrix6d own = normal.views[v].own;
    own.diagonal() *= 1 + damping;
    move(next.views[v].target,
         core::solve_symmetric(own, normal.views[v].right - normal.views[v].mixed.transpose() * step));
  }
  return next;
}

void minimize(Bundle& bundle, const Offsets& offsets) {
  constexpr int kMostSteps = 100;
  constexpr double kLastGain = 1e-10, kMostDamping = 1e8;
  const std::vector<int> free = free_common(bundle);
  double damping = 1e-4, squares = squares_of(bundle, offsets);
  for (int i = 0; i < kMostSteps && damping < kMostDamping; ++i) {
    const Normal normal(bundle, offsets);
    while (damping < kMostDamping) {
      Bundle next = stepped(bundle, normal, free, damping);
      const double found = squares_of(next, offsets);
      if (!(found <= squares)) {
        damping *= 10;
        continue;
      }
      const bool is_last = squares - found <= kLastGain * squares;
      bundle = std::move(next);
      squares = found;
      damping = std::max(damping / 10, 1e-12);
      if (is_last) return;
      break;
    }
  }
}

/// Inverse of the reduced matrix times the variance. A pseudo-inverse would leave out directions that the
/// images do not determine, and so call a parameter exact that is not known at all.
MatrixXd covariance_of(const Bundle& bundle, const Offsets& offsets, double variance) {
  constexpr double kOpen = 1e-11;     // an eigenvalue of the normalized matrix below this is rounding
  constexpr double kInvolved = 1e-6;  // least share of such a direction in a parameter that it leaves open
  const std::vector<int> free = free_common(bundle);
  const auto n = static_cast<Eigen::Index>(free.size());
  MatrixXd matrix;
  VectorXd side;
  Normal(bundle, offsets).reduce(free, 0, matrix, side);
  const VectorXd scale =
      matrix.diagonal().cwiseMax(std::numeric_limits<double>::min()).cwiseSqrt().cwiseInverse();
  const auto eigen = core::symmetric_eigen(scale.asDiagonal() * matrix * scale.asDiagonal());
  MatrixXd inverse = MatrixXd::Zero(n, n);
  VectorXd open = VectorXd::Zero(n);
  for (Eigen::Index k = 0; k < n; ++k) {
    const VectorXd vector = eigen.vectors.col(k);
    if (eigen.values[k] > kOpen)
      inverse += vector * vector.transpose() / eigen.values[k];
    else
      open = (vector.array().square() > kInvolved).select(std::numeric_limits<double>::infinity(), open);
  }
  inverse = variance * (scale.asDiagonal() * inverse * scale.asDiagonal()).eval();
  inverse.diagonal() += open;
  MatrixXd full = MatrixXd::Zero(Normal::kCommon, Normal::kCommon);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j < n; ++j)
      full(free[static_cast<std::size_t>(i)], free[static_cast<std::size_t>(j)]) = inverse(i, j);
  return (full + full.transpose()) / 2;
}

}  // namespace

Camera::Point project(const Lens& lens, const Vector3d& point) {
  const double nowhere = std::numeric_limits<double>::quiet_NaN();
  if (!(point[2] > 0)) return {nowhere, nowhere};
  return camera::distort(lens,
                         {lens.fx * point[0] / point[2] + lens.cx, lens.fy * point[1] / point[2] + lens.cy})
      .point;
}

BundleFit adjust(Bundle& bundle) {
  const int rounds = bundle.radius_mm > 0 ? 3 : 1;  // the offsets hardly depend on the parameters
  Offsets offsets;
  for (int i = 0; i < rounds; ++i) {
    offsets = offsets_of(bundle);
    minimize(bundle, offsets);
  }
  double squares = 0, count = 0;
  for (std::size_t v = 0; v < bundle.views.size(); ++v) {
    for (CalibrationImage* image : bundle.views[v].images) image->residuals.clear();
    each_residual(bundle, offsets, v, [&](int side, std::size_t, const Vector2d& r) {
      bundle.views[v].images[side]->residuals.push_back({r[0], r[1]});
      squares += r.squaredNorm(), count += 1;
    });
    for (CalibrationImage* image : bundle.views[v].images) image->rms = root_mean_square(image->residuals);
  }
  const double parameters =
      static_cast<double>(free_common(bundle).size()) + kPose * static_cast<double>(bundle.views.size());
  const double variance = squares / std::max(1.0, 2 * count - parameters);
  return {covariance_of(bundle, offsets, variance), std::sqrt(squares / count)};
}

}  // namespace dic::calibration
