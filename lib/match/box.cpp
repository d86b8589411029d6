#include "match/box.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dic::match {
namespace {

using Point = std::array<double, 2>;
using Polygon = std::vector<Point>;

/// Positive if p lies to the right of a -> b as seen on the screen: inside a box whose corners are clockwise.
double side(const Point& a, const Point& b, const Point& p) {
  return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]);
}

/// The part of a convex polygon on the inner side of the edge a -> b (one step of Sutherland & Hodgman 1974).
Polygon clip(const Polygon& polygon, const Point& a, const Point& b) {
  Polygon clipped;
  for (std::size_t k = 0; k < polygon.size(); ++k) {
    const Point &p = polygon[k], &q = polygon[(k + 1) % polygon.size()];
    const double from = side(a, b, p), to = side(a, b, q);
    if (from >= 0) clipped.push_back(p);
    if ((from < 0) == (to < 0)) continue;
    const double t = from / (from - to);
    clipped.push_back({p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])});
  }
  return clipped;
}

double area(const Polygon& polygon) {
  double twice = 0;
  for (std::size_t k = 0; k < polygon.size(); ++k) {
    const Point &p = polygon[k], &q = polygon[(k + 1) % polygon.size()];
    twice += p[0] * q[1] - p[1] * q[0];
  }
  return twice / 2;
}

double box_area(const Match& match) { return match.scale * match.scale * match.width * match.height; }

double half_diagonal(const Match& match) { return match.scale * std::hypot(match.width, match.height) / 2; }

}  // namespace

double box_overlap(const Match& a, const Match& b) {
  const double distance = std::hypot(a.center_x - b.center_x, a.center_y - b.center_y);
  if (distance >= half_diagonal(a) + half_diagonal(b)) return 0;
  const auto corners = box_corners(a), clipper = box_corners(b);
  Polygon common(corners.begin(), corners.end());
  for (std::size_t k = 0; k < clipper.size(); ++k)
    common = clip(common, clipper[k], clipper[(k + 1) % clipper.size()]);
  const double shared = area(common);
  return shared / (box_area(a) + box_area(b) - shared);
}

bool is_suppressed(const Match& match, const std::vector<Match>& accepted, double max_overlap) {
  return std::any_of(accepted.begin(), accepted.end(),
                     [&](const Match& other) { return box_overlap(match, other) > max_overlap; });
}

std::vector<Match> suppress_non_maxima(const std::vector<Match>& matches, double max_overlap,
                                       int max_matches) {
  std::vector<Match> accepted;
  for (const Match& match : matches) {
    if (static_cast<int>(accepted.size()) == max_matches) break;
    if (!is_suppressed(match, accepted, max_overlap)) accepted.push_back(match);
  }
  return accepted;
}

}  // namespace dic::match

namespace dic {

std::array<std::array<double, 2>, 4> box_corners(const Match& match) {
  const double angle = match.rotation_deg * std::numbers::pi / 180;
  const double cosine = match.scale * std::cos(angle), sine = match.scale * std::sin(angle);
  const auto corner = [&](double x, double y) {
    return std::array{match.x + cosine * x - sine * y, match.y + sine * x + cosine * y};
  };
  const double right = match.width - 0.5, bottom = match.height - 0.5;
  return {corner(-0.5, -0.5), corner(right, -0.5), corner(right, bottom), corner(-0.5, bottom)};
}

}  // namespace dic
