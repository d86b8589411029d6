#include "stereo/surface_strain.hpp"

#include <Eigen/Geometry>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <dic/shared/strain.hpp>
#include <dic/shared/strain_sigma.hpp>
#include <limits>

#include "stereo/local_fit.hpp"

namespace dic::stereo {
namespace {

using Eigen::Matrix2d;
using Eigen::Matrix3d;
using Eigen::Vector2d;
using Eigen::Vector3d;
using Tangents = Eigen::Matrix<double, 3, 2>;

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kRowsPerTask = 4;

/// Derivatives along the rows and columns of the grid, mm per node.
Tangents tangents_of(const LocalFit& fit, std::span<const Vector3d> values) {
  Tangents tangents = Tangents::Zero();
  for (std::size_t n = 0; n < fit.nodes().size(); ++n) {
    const Vector3d& value = values[fit.nodes()[n].index];
    tangents.col(0) += fit.rows()[n][1] * value, tangents.col(1) += fit.rows()[n][2] * value;
  }
  return tangents;
}

/// Orthonormal axes of the tangent plane.
struct TangentFrame {
  Vector3d normal;
  Tangents axes;        ///< x: the x axis of the measurement along the surface; y: perpendicular to it
  Matrix2d from_nodes;  ///< derivatives along the axes from those along the grid, nodes per mm: row by row

  explicit TangentFrame(const Tangents& along_grid) {
    normal = along_grid.col(0).cross(along_grid.col(1)).normalized();
    const Vector3d x = Vector3d::UnitX() - normal.x() * normal;
    axes.col(0) = x.normalized();
    axes.col(1) = normal.cross(axes.col(0));
    from_nodes = (axes.transpose() * along_grid).inverse().transpose();
  }
  bool exists() const { return normal.allFinite() && axes.allFinite() && from_nodes.allFinite(); }
};

/// (C - I) / 2 without the 1s that would cancel; f = the gradient of the displacement along the axes.
Matrix2d green_lagrange(const Tangents& axes, const Tangents& gradient) {
  const Matrix2d half = axes.transpose() * gradient;
  return (half + half.transpose() + gradient.transpose() * gradient) / 2;
}

strain::Tensor tensor_of(const Matrix2d& m) { return {m(0, 0), m(1, 1), (m(0, 1) + m(1, 0)) / 2}; }

strain::Tensor strain_of(const TangentFrame& frame, const Tangents& gradient, StrainMeasure measure) {
  const Matrix2d green = green_lagrange(frame.axes, gradient);
  const Matrix2d stretch = Matrix2d::Identity() + 2 * green;  // C: positive definite but for folded material
  const double det = stretch.determinant();
  switch (measure) {
    case StrainMeasure::engineering: {
      const Matrix2d plane = frame.axes.transpose() * gradient;
      return tensor_of((plane + plane.transpose()) / 2);
    }
    case StrainMeasure::green_lagrange:
      return tensor_of(green);
    case StrainMeasure::hencky:
      if (det > 0) return strain::hencky(tensor_of(stretch), std::sqrt(det));
      break;
    case StrainMeasure::almansi:
      if (det > 0) return tensor_of(stretch.inverse() * green);
      break;
  }
  return {strain::missing, strain::missing, strain::missing};
}

/// Factors from a change of the Green-Lagrange strain to one of the measure, for the normal strains.
Vector2d change_of(const TangentFrame& frame, const Tangents& gradient, StrainMeasure measure) {
  const Matrix2d green = green_lagrange(frame.axes, gradient);
  const Vector2d stretch = Vector2d::Ones() + 2 * green.diagonal();
  if (measure == StrainMeasure::hencky) return stretch.cwiseInverse();
  if (measure == StrainMeasure::almansi) return stretch.cwiseProduct(stretch).cwiseInverse();
  return Vector2d::Ones();
}

/// Covariance of the derivatives along rows and columns of the grid, per node^2, for errors of variance 1.
class SlopeErrors {
 public:
  SlopeErrors(const MeasuredSubsets& subsets, int step, int window) : correlation_(subsets, step, window) {
    const strain::SlopeCovariance c = strain::complete_window_covariance(correlation_, window);
    complete_ << c.xx, c.xy, c.xy, c.yy;
    complete_ *= double(step) * step;
  }
  Matrix2d of(const LocalFit& fit) const {
    if (fit.is_complete()) return complete_;
    Matrix2d sum = Matrix2d::Zero();
    const auto& nodes = fit.nodes();
    for (std::size_t a = 0; a < nodes.size(); ++a)
      for (std::size_t b = 0; b < nodes.size(); ++b) {
        const double correlation =
            correlation_.at(std::abs(nodes[a].i - nodes[b].i), std::abs(nodes[a].j - nodes[b].j));
        const Vector2d p(fit.rows()[a][1], fit.rows()[a][2]), q(fit.rows()[b][1], fit.rows()[b][2]);
        sum += correlation * p * q.transpose();
      }
    return sum;
  }

 private:
  strain::ErrorCorrelation correlation_;
  Matrix2d complete_;
};

/// Variances of xx, yy, xy of the Green-Lagrange strain. Its xx is the derivative along x of the part of the
/// errors along the x axis, now along the deformed one and before along the original one, and so on.
strain::Tensor variances_of(const TangentFrame& frame, const Tangents& gradient, const Matrix2d& slopes,
                            const Eigen::Matrix<double, 6, 6>& errors) {
  Eigen::Matrix<double, 6, 2> along;
  along << frame.axes + gradient, -frame.axes;
  const Matrix2d v = along.transpose() * errors * along;
  const Matrix2d s = frame.from_nodes * slopes * frame.from_nodes.transpose();
  return {v(0, 0) * s(0, 0), v(1, 1) * s(1, 1),
          (v(1, 1) * s(0, 0) + v(0, 0) * s(1, 1) + 2 * v(0, 1) * s(0, 1)) / 4};
}

/// Errors of both cameras. Order 2 adds errors to those of order 1 that are less alike at neighbours, so that
/// the parts of both cameras enter the slopes differently; what they share is like the errors of order 1.
class StrainErrors {
 public:
  StrainErrors(const StereoSubsets& subsets, int step, int window)
      : left_(subsets.left, step, window),
        right_(subsets.right, step, window),
        differs_(subsets.left.order != subsets.right.order) {}

  strain::Tensor of(const SurfacePoints& points, std::size_t k, const LocalFit& fit,
                    const TangentFrame& frame, const Tangents& gradient) const {
    const Eigen::Matrix<double, 6, 6> all = points.covariances[k].cast<double>();
    if (!differs_) return variances_of(frame, gradient, left_.of(fit), all);
    const Eigen::Matrix<double, 6, 6> right = points.right_covariances[k].cast<double>();
    const strain::Tensor of_right = variances_of(frame, gradient, right_.of(fit), right),
                         others = variances_of(frame, gradient, left_.of(fit), all - right);
    return {std::max(of_right.xx + others.xx, 0.0), std::max(of_right.yy + others.yy, 0.0),
            std::max(of_right.xy + others.xy, 0.0)};
  }

 private:
  SlopeErrors left_, right_;
  bool differs_;
};

StrainField empty_strain(std::size_t nodes) {
  const NodeValues<float> none(nodes, kMissing);
  return {none, none, none, none, none, none, none, none, none};
}

void store(StrainField& out, std::size_t k, const strain::Values& values) {
  out.exx[k] = values.exx, out.eyy[k] = values.eyy, out.exy[k] = values.exy;
  out.e1[k] = values.e1, out.e2[k] = values.e2, out.von_mises[k] = values.von_mises;
}

void store_sigmas(StrainField& out, std::size_t k, const strain::Tensor& variances, const Vector2d& change) {
  out.sigma_exx[k] = static_cast<float>(change[0] * std::sqrt(variances.xx));
  out.sigma_eyy[k] = static_cast<float>(change[1] * std::sqrt(variances.yy));
  out.sigma_exy[k] = static_cast<float>(std::sqrt(change[0] * change[1] * variances.xy));
}

}  // namespace

StrainField surface_strain(const SurfacePoints& points, std::span<const std::uint8_t> measured,
                           const StrainOptions& options, const StereoSubsets& subsets,
                           core::ThreadPool& pool) {
  const Grid& grid = points.grid;
  StrainField out = empty_strain(measured.size());
  const StrainErrors errors(subsets, grid.step, options.window);
  pool.parallel_for(grid.ny, kRowsPerTask, [&](std::int64_t first, std::int64_t last, int) {
    LocalFit fit(grid.nx, grid.ny, options.window, 1);
    for (std::int64_t j = first; j < last; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
        if (!measured[k] || !fit.place(points.usable, i, static_cast<int>(j))) continue;
        const TangentFrame frame(tangents_of(fit, points.positions));
        if (!frame.exists()) continue;
        const Tangents gradient = tangents_of(fit, points.displacements) * frame.from_nodes.transpose();
        const strain::Tensor tensor = strain_of(frame, gradient, options.measure);
        store(out, k, strain::values_of(tensor));
        store_sigmas(out, k, errors.of(points, k, fit, frame, gradient),
                     change_of(frame, gradient, options.measure));
      }
  });
  return out;
}

}  // namespace dic::stereo
