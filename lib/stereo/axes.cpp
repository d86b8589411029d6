#include "stereo/axes.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/Geometry>
#include <Eigen/LU>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/shared/strain_sigma.hpp>
#include <limits>
#include <locale>
#include <numbers>
#include <numeric>
#include <sstream>
#include <string>

namespace dic::stereo {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

constexpr double kDegrees = 180 / std::numbers::pi;

std::vector<std::size_t> indices_of(std::span<const std::uint8_t> usable) {
  std::vector<std::size_t> indices;
  for (std::size_t k = 0; k < usable.size(); ++k)
    if (usable[k]) indices.push_back(k);
  return indices;
}

Vector3d mean_of(std::span<const Vector3d> values, const std::vector<std::size_t>& nodes) {
  Vector3d sum = Vector3d::Zero();
  for (const std::size_t k : nodes) sum += values[k];
  return sum / static_cast<double>(nodes.size());
}

/// Axes with z along `normal`, turned away from the camera, and x as near as possible to that of the camera.
Matrix3d axes_along(Vector3d normal) {
  if (normal.z() < 0) normal = -normal;
  const Vector3d x = (Vector3d::UnitX() - normal.x() * normal).normalized();
  Matrix3d rotation;
  rotation << x.transpose(), normal.cross(x).transpose(), normal.transpose();
  return rotation;
}

/// The plane with the smallest distances from the points.
Axes plane_through(std::span<const Vector3d> positions, const std::vector<std::size_t>& nodes) {
  Axes axes;
  axes.origin = mean_of(positions, nodes);
  Matrix3d spread = Matrix3d::Zero();
  for (const std::size_t k : nodes) {
    const Vector3d d = positions[k] - axes.origin;
    spread += d * d.transpose();
  }
  const Eigen::SelfAdjointEigenSolver<Matrix3d> solver(spread);
  constexpr double kLine = 1e-6;  // ratio of the squares of width and length
  if (nodes.size() < 3 || !(solver.eigenvalues()[1] > kLine * solver.eigenvalues()[2]))
    throw UsageError(
        "The axes cannot be those of the best-fit plane: fewer than three points were measured, or "
        "all on one line.");
  axes.rotation = axes_along(solver.eigenvectors().col(0));
  return axes;
}

struct Cylinder {
  Vector3d point, direction;  ///< of its axis
  double radius = 0;
};

/// The direction that is most perpendicular to the normals of the surface.
Vector3d axis_direction(std::span<const Vector3d> positions, std::span<const std::uint8_t> usable,
                        const Grid& grid) {
  const std::size_t nx = grid.nx;
  Matrix3d normals = Matrix3d::Zero();
  constexpr std::size_t kApart = 4;  // nodes, so that noise does not tilt the normals
  for (std::size_t k = 0; k + kApart * (nx + 1) < positions.size(); ++k) {
    const std::size_t right = k + kApart, below = k + kApart * nx;
    if (k % nx + kApart >= nx || !usable[k] || !usable[right] || !usable[below]) continue;
    const Vector3d normal =
        (positions[right] - positions[k]).cross(positions[below] - positions[k]).normalized();
    normals += normal * normal.transpose();
  }
  return Eigen::SelfAdjointEigenSolver<Matrix3d>(normals).eigenvectors().col(0);
}

/// The circle through positions seen along the axis (Kasa, "A circle fitting procedure and its error
/// analysis", 1976), for a start.
Cylinder first_cylinder(std::span<const Vector3d> positions, const std::vector<std::size_t>& nodes,
                        const Vector3d& direction) {
  const Vector3d mean = mean_of(positions, nodes), e1 = direction.unitOrthogonal(), e2 = direction.cross(e1);
  Matrix3d normal = Matrix3d::Zero();
  Vector3d right = Vector3d::Zero();
  for (const std::size_t k : nodes) {
    const Vector3d d = positions[k] - mean, row(d.dot(e1), d.dot(e2), 1);
    normal += row * row.transpose();
    right += row * row.head<2>().squaredNorm();
  }
  const Vector3d c = normal.ldlt().solve(right);
  return {mean + (c[0] * e1 + c[1] * e2) / 2, direction, std::sqrt(c[2] + c.head<2>().squaredNorm() / 4)};
}

/// One Gauss-Newton step towards the cylinder with the smallest distances from the positions.
void improve(Cylinder& cylinder, std::span<const Vector3d> positions, const std::vector<std::size_t>& nodes) {
  using Vector5d = Eigen::Matrix<double, 5, 1>;
  const Vector3d e1 = cylinder.direction.unitOrthogonal(), e2 = cylinder.direction.cross(e1);
  Eigen::Matrix<double, 5, 5> normal = Eigen::Matrix<double, 5, 5>::Zero();
  Vector5d right = Vector5d::Zero();
  for (const std::size_t k : nodes) {
    const Vector3d d = positions[k] - cylinder.point;
    const double along = d.dot(cylinder.direction);
    const Vector3d across = d - along * cylinder.direction;
    const double distance = across.norm(), c1 = across.dot(e1) / distance, c2 = across.dot(e2) / distance;
    const Vector5d row = (Vector5d() << c1, c2, along * c1, along * c2, 1).finished();
    normal += row * row.transpose();
    right += row * (distance - cylinder.radius);
  }
  const Vector5d step = normal.ldlt().solve(right);
  cylinder.point += step[0] * e1 + step[1] * e2;
  cylinder.direction = (cylinder.direction + step[2] * e1 + step[3] * e2).normalized();
  cylinder.radius += step[4];
}

/// Axes with y along the axis of the cylinder that fits best, downwards or to the right, and z away from the
/// camera.
Axes axes_of_cylinder(std::span<const Vector3d> positions, std::span<const std::uint8_t> usable,
                      const Grid& grid) {
  const std::vector<std::size_t> nodes = indices_of(usable);
  constexpr std::size_t kFewNodes = 20;
  if (nodes.size() < kFewNodes)
    throw UsageError("The axes cannot be those of a cylinder: fewer than 20 points were measured.");
  const Vector3d mean = mean_of(positions, nodes);
  double reach = 0;
  for (const std::size_t k : nodes) reach = std::max(reach, (positions[k] - mean).norm());
  Cylinder cylinder = first_cylinder(positions, nodes, axis_direction(positions, usable, grid));
  constexpr int kSteps = 20;
  for (int step = 0; step < kSteps; ++step) improve(cylinder, positions, nodes);
  constexpr double kFlattest = 50;  // radius, in halves of the surface
  if (!(cylinder.radius > 0 && cylinder.radius < kFlattest * reach) || !cylinder.point.allFinite())
    throw UsageError("The axes cannot be those of a cylinder: the surface is not round.");
  Vector3d y = cylinder.direction;
  if (y.x() + y.y() < 0) y = -y;
  const Vector3d z = (Vector3d::UnitZ() - y.z() * y).normalized();
  Axes axes;
  axes.rotation << y.cross(z).transpose(), y.transpose(), z.transpose();
  axes.origin = cylinder.point + y.dot(mean - cylinder.point) * y;
  return axes;
}

/// The position of the usable node that is nearest to an image point.
Vector3d position_at(const Roi::Vertex& at, const Grid& grid, std::span<const Vector3d> positions,
                     std::span<const std::uint8_t> usable) {
  double nearest = std::numeric_limits<double>::infinity();
  std::size_t found = 0;
  for (std::size_t k = 0; k < usable.size(); ++k) {
    if (!usable[k]) continue;
    const double distance = std::hypot(grid.x(static_cast<int>(k % grid.nx)) - at.x,
                                       grid.y(static_cast<int>(k / grid.nx)) - at.y);
    if (distance < nearest) nearest = distance, found = k;
  }
  if (!(nearest <= 2.0 * grid.step))
    throw UsageError("No point was measured within two steps of (" + std::to_string(std::lround(at.x)) +
                     ", " + std::to_string(std::lround(at.y)) +
                     "), which is to define the axes: choose another one.");
  return positions[found];
}

Axes through_points(const std::array<Roi::Vertex, 3>& points, const Grid& grid,
                    std::span<const Vector3d> positions, std::span<const std::uint8_t> usable) {
  std::array<Vector3d, 3> p;
  for (std::size_t k = 0; k < p.size(); ++k) p[k] = position_at(points[k], grid, positions, usable);
  const Vector3d x = (p[1] - p[0]).normalized(), normal = x.cross(p[2] - p[0]);
  if (!(normal.norm() > 1e-3 * (p[1] - p[0]).norm()))
    throw UsageError("The three points that are to define the axes lie on one line: choose others.");
  const Vector3d z = normal.normalized();
  Axes axes;
  axes.origin = p[0];
  axes.rotation << x.transpose(), z.cross(x).transpose(), z.transpose();
  return axes;
}

/// Number of nodes whose errors are as those of one: subsets overlap.
double nodes_alike(const MeasuredSubsets& subsets, int step) {
  const strain::ErrorCorrelation errors(subsets, step, 3);
  const int reach = std::min(subsets.size / step, strain::largest_window - 1);
  double sum = 0;
  for (int j = -reach; j <= reach; ++j)
    for (int i = -reach; i <= reach; ++i) sum += errors.at(std::abs(i), std::abs(j));
  return std::max(sum, 1.0);
}

Matrix3d cross_matrix(const Vector3d& v) {
  Matrix3d m;
  m << 0, -v.z(), v.y(), v.z(), 0, -v.x(), -v.y(), v.x(), 0;
  return m;
}

std::array<double, 3> array_of(const Vector3d& v) { return {v.x(), v.y(), v.z()}; }
Vector3d vector_of(const std::array<double, 3>& v) { return {v[0], v[1], v[2]}; }

Matrix3d rotation_of(const RigidMotion& motion) {
  const Vector3d angles = vector_of(motion.rotation_deg) / kDegrees;
  const double angle = angles.norm();
  if (angle == 0) return Matrix3d::Identity();
  return Eigen::AngleAxisd(angle, angles / angle).toRotationMatrix();
}

/// Sum of body(k) over nodes, which does not depend on the number of threads.
template <typename Sum, typename Body>
Sum sum_over(const std::vector<std::size_t>& nodes, core::ThreadPool& pool, const Body& body) {
  constexpr std::size_t kBlock = 2048;
  std::vector<Sum> parts((nodes.size() + kBlock - 1) / kBlock, Sum::Zero());
  pool.parallel_for(std::ssize(parts), 1, [&](std::int64_t first, std::int64_t last, int) {
    for (auto part = static_cast<std::size_t>(first); part < static_cast<std::size_t>(last); ++part) {
      Sum sum = Sum::Zero();
      for (std::size_t n = part * kBlock; n < std::min((part + 1) * kBlock, nodes.size()); ++n)
        sum += body(nodes[n]);
      parts[part] = sum;
    }
  });
  return std::accumulate(parts.begin(), parts.end(), Sum(Sum::Zero()));
}

/// The rotation of positions about their mean onto the moved ones (Kabsch, "A solution for the best rotation
/// to relate two sets of vectors", 1976).
Matrix3d best_rotation(const SurfacePoints& points, const std::vector<std::size_t>& nodes,
                       const Vector3d& centre, const Vector3d& translation, core::ThreadPool& pool) {
  const auto products = sum_over<Matrix3d>(nodes, pool, [&](std::size_t k) -> Matrix3d {
    const Vector3d before = points.positions[k] - centre;
    return (before + points.displacements[k] - translation) * before.transpose();
  });
  const Eigen::JacobiSVD<Matrix3d> svd(products, Eigen::ComputeFullU | Eigen::ComputeFullV);
  Vector3d signs(1, 1, (svd.matrixU() * svd.matrixV().transpose()).determinant());
  return svd.matrixU() * signs.asDiagonal() * svd.matrixV().transpose();
}

/// Standard deviations of rotation (rad) and translation, from the noise of the displacements.
Eigen::Matrix<double, 6, 1> motion_sigmas(const SurfacePoints& points, const std::vector<std::size_t>& nodes,
                                          const Vector3d& centre, double alike, core::ThreadPool& pool) {
  using Matrix6d = Eigen::Matrix<double, 6, 6>;
  using Both = Eigen::Matrix<double, 6, 12>;
  const Both sums = sum_over<Both>(nodes, pool, [&](std::size_t k) {
    Eigen::Matrix<double, 3, 6> by_motion;
    by_motion << -cross_matrix(points.positions[k] - centre), Matrix3d::Identity();
    const Eigen::Matrix<double, 6, 6> errors = points.covariances[k].cast<double>();
    const Matrix3d covariance = errors.topLeftCorner<3, 3>() + errors.bottomRightCorner<3, 3>() -
                                errors.topRightCorner<3, 3>() - errors.bottomLeftCorner<3, 3>();
    Both both;
    both << by_motion.transpose() * by_motion, by_motion.transpose() * covariance * by_motion;
    return both;
  });
  const Matrix6d inverse = sums.leftCols<6>().inverse(), noise = sums.rightCols<6>();
  return (alike * inverse * noise * inverse).diagonal().cwiseMax(0).cwiseSqrt();
}

}  // namespace

Axes axes_of(const StereoOptions& options, const Grid& grid, std::span<const Vector3d> positions,
             std::span<const std::uint8_t> usable) {
  switch (options.axes) {
    case StereoAxes::camera:
      break;
    case StereoAxes::plane:
      return plane_through(positions, indices_of(usable));
    case StereoAxes::cylinder:
      return axes_of_cylinder(positions, usable, grid);
    case StereoAxes::points:
      return through_points(*options.axes_points, grid, positions, usable);
  }
  return {};
}

RigidMotion rigid_motion_of(const SurfacePoints& points, const MeasuredSubsets& subsets,
                            core::ThreadPool& pool) {
  const std::vector<std::size_t> nodes = indices_of(points.usable);
  RigidMotion motion;
  motion.points = std::ssize(nodes);
  if (nodes.size() < 3) return motion;
  const Vector3d centre = mean_of(points.positions, nodes),
                 translation = mean_of(points.displacements, nodes);
  const Matrix3d rotation = best_rotation(points, nodes, centre, translation, pool);
  const Eigen::AngleAxisd angle(rotation);
  const Eigen::Matrix<double, 6, 1> sigmas =
      motion_sigmas(points, nodes, centre, nodes_alike(subsets, points.grid.step), pool);
  if (!sigmas.allFinite()) return motion;
  motion.is_known = true;
  motion.centre_mm = array_of(centre);
  motion.translation_mm = array_of(translation);
  motion.rotation_deg = array_of(angle.angle() * kDegrees * angle.axis());
  motion.sigma_rotation_deg = array_of(sigmas.head<3>() * kDegrees);
  motion.sigma_translation_mm = array_of(sigmas.tail<3>());
  double squares = 0;
  for (const std::size_t k : nodes) {
    const Vector3d before = points.positions[k] - centre;
    squares += (points.displacements[k] - translation - (rotation * before - before)).squaredNorm();
  }
  motion.residual_mm = std::sqrt(squares / static_cast<double>(nodes.size()));
  return motion;
}

void remove_motion(const RigidMotion& motion, std::span<const Vector3d> positions,
                   std::vector<Vector3d>& displacements) {
  if (!motion.is_known) return;
  const Matrix3d back = rotation_of(motion).transpose();
  const Vector3d centre = vector_of(motion.centre_mm), translation = vector_of(motion.translation_mm);
  for (std::size_t k = 0; k < displacements.size(); ++k) {
    const Vector3d before = positions[k] - centre;
    displacements[k] = back * (before + displacements[k] - translation) - before;
  }
}

}  // namespace dic::stereo

namespace dic {

std::array<Roi::Vertex, 3> parse_axes_points(const std::string& text) {
  std::array<Roi::Vertex, 3> points;
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  char comma[3] = {};
  for (std::size_t k = 0; k < points.size(); ++k) stream >> points[k].x >> comma[k] >> points[k].y;
  std::string rest;
  if (!stream || comma[0] != ',' || comma[1] != ',' || comma[2] != ',' || stream >> rest)
    throw UsageError("needs three points \"x,y x,y x,y\", got \"" + text + "\"");
  return points;
}

}  // namespace dic
