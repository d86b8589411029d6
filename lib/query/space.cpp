#include "query/space.hpp"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>

#include "core/dense_solvers.hpp"

namespace dic::query {
namespace {

using Eigen::Vector3d;

Vector3d vector_of(const ProbeValues& values, const std::array<std::string_view, 3>& names) {
  return {values[names[0]], values[names[1]], values[names[2]]};
}

/// The unit normal of the surface along a line, away from the cameras; NaN if it is unknown. Means over the
/// line, so that the noise of single points does not tilt it.
struct Normals {
  Vector3d before = Vector3d::Zero(), now = Vector3d::Zero();

  Normals(const Field& field, const std::vector<LinePoint>& line) {
    const double reach = 2.0 * field.grid().step;
    const auto seen = [&](const Position& at) { return SpacePoint(probe_point(field, at).values); };
    for (const LinePoint& point : line) {
      const SpacePoint left = seen({point.at.x - reach, point.at.y}),
                       right = seen({point.at.x + reach, point.at.y});
      const SpacePoint top = seen({point.at.x, point.at.y - reach}),
                       bottom = seen({point.at.x, point.at.y + reach});
      const Vector3d moved = (right.moved - left.moved).cross(bottom.moved - top.moved);
      if (!moved.allFinite()) continue;
      now += moved;
      before += (right.at - left.at).cross(bottom.at - top.at);
    }
    now.normalize(), before.normalize();
  }
};

/// Points of a line by their distance along its chord, from its first to its last measured point.
struct Profile {
  std::vector<double> along, height;  ///< mm; the height is 0 at both ends
  double length = 0;                  ///< along the points, mm
  Vector3d up;                        ///< direction of the height

  Profile(const std::vector<Vector3d>& points, const Vector3d& normal) {
    const Vector3d chord = (points.back() - points.front()).normalized();
    up = (normal - normal.dot(chord) * chord).normalized();
    for (std::size_t k = 0; k < points.size(); ++k) {
      along.push_back(chord.dot(points[k] - points.front()));
      height.push_back(up.dot(points[k] - points.front()));
      if (k > 0) length += (points[k] - points[k - 1]).norm();
    }
  }

  /// Coefficients c of the polynomial c0 + c1 s + c2 s^2 through the heights; s is counted from the middle.
  Vector3d polynomial(int terms) const {
    Eigen::Matrix3d normal = Eigen::Matrix3d::Zero();
    Vector3d right = Vector3d::Zero();
    const double scale = std::max(along.back() / 2, 1e-300);
    for (std::size_t k = 0; k < along.size(); ++k) {
      const double s = (along[k] - along.back() / 2) / scale;
      const Vector3d powers(1, s, terms > 2 ? s * s : 0);
      normal += powers * powers.transpose(), right += height[k] * powers;
    }
    if (terms < 3) normal(2, 2) = 1;
    const Vector3d c = core::solve_symmetric(normal, right);
    return {c[0], c[1] / scale, c[2] / (scale * scale)};
  }

  /// Largest minus smallest distance from the straight line that fits best.
  double flatness() const {
    const Vector3d line = polynomial(2);
    double least = HUGE_VAL, most = -HUGE_VAL;
    for (std::size_t k = 0; k < along.size(); ++k) {
      const double rest = height[k] - line[0] - line[1] * (along[k] - along.back() / 2);
      least = std::min(least, rest), most = std::max(most, rest);
    }
    return most - least;
  }
};

/// Index of the largest absolute value.
std::size_t largest(const std::vector<double>& values) {
  const auto found = std::ranges::max_element(values, {}, [](double value) { return std::abs(value); });
  return static_cast<std::size_t>(found - values.begin());
}

}  // namespace

SpacePoint::SpacePoint(const ProbeValues& values)
    : at(vector_of(values, {"X", "Y", "Z"})),
      moved(at + vector_of(values, {"U", "V", "W"})),
      sigma(vector_of(values, {"sigma_U", "sigma_V", "sigma_W"})) {}

double SpacePoint::variance_along(const Vector3d& direction) const {
  const double sum = direction.cwiseAbs().dot(sigma);
  return sum * sum;
}

ExtensometerValues distance_in_space(const SpacePoint& from, const SpacePoint& to) {
  ExtensometerValues result;
  result.gauge_length = (to.at - from.at).norm();
  const Vector3d now = to.moved - from.moved;
  const double length = now.norm();
  result.change = length - result.gauge_length;
  result.strain = result.change / result.gauge_length;
  result.sigma_change = std::sqrt(from.variance_along(now / length) + to.variance_along(now / length));
  result.sigma_strain = result.sigma_change / result.gauge_length;
  return result;
}

LineShape shape_in_space(const Field& field, std::vector<LinePoint>& line) {
  constexpr std::size_t kFewPoints = 3;
  std::vector<SpacePoint> points;
  std::vector<Vector3d> before, now;
  std::vector<std::size_t> known;
  for (std::size_t k = 0; k < line.size(); ++k) {
    const SpacePoint point(line[k].point.values);
    if (!point.is_known()) continue;
    known.push_back(k);
    points.push_back(point);
    before.push_back(point.at), now.push_back(point.moved);
  }
  LineShape shape;
  const Normals normals(field, line);
  if (known.size() < kFewPoints || !normals.now.allFinite() || normals.now.isZero()) return shape;
  const Profile reference(before, normals.before), current(now, normals.now);
  std::vector<double> change;
  for (std::size_t k = 0; k < known.size(); ++k) {
    line[known[k]].offset = current.height[k];
    change.push_back(current.height[k] - reference.height[k]);
  }
  shape.length = current.length;
  shape.change = current.length - reference.length;
  shape.deflection = current.height[largest(current.height)];
  shape.flatness = current.flatness();
  shape.curvature = 2 * current.polynomial(3)[2];
  const std::size_t most = largest(change);
  shape.bending = change[most];
  const double share = current.along[most] / current.along.back();
  const auto variance = [&](const SpacePoint& point) { return point.variance_along(current.up); };
  shape.sigma_bending =
      std::sqrt(variance(points[most]) + (1 - share) * (1 - share) * variance(points.front()) +
                share * share * variance(points.back()));
  return shape;
}

}  // namespace dic::query
