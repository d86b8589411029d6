#include "match/loose_motion.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dic::match {
namespace {

using pose::Freedom;
using pose::Warp;

/// Share of a motion, in px at the rim, from which it is a turn.
constexpr double kTurns = 0.3;

/// Turn of a motion, radians per px.
double turn_of(const std::vector<double>& loose, Freedom freedom, double rim) {
  switch (freedom) {
    case Freedom::rotation:
    case Freedom::similarity:
      return loose[2] / rim;
    case Freedom::affine:
      return (loose[4] - loose[3]) / 2 / rim;
    case Freedom::shift:
    case Freedom::scale:
      break;
  }
  return 0;
}

/// The pose that shows a template turned about its point (xi, eta) before.
Warp turned_about(const Warp& w, double xi, double eta, double radians) {
  const double c = std::cos(radians), s = std::sin(radians);
  Warp turned = w;
  turned.xx = w.xx * c + w.xy * s, turned.xy = w.xy * c - w.xx * s;
  turned.yx = w.yx * c + w.yy * s, turned.yy = w.yy * c - w.yx * s;
  turned.center_x += w.xx * xi + w.xy * eta - (turned.xx * xi + turned.xy * eta);
  turned.center_y += w.yx * xi + w.yy * eta - (turned.yx * xi + turned.yy * eta);
  return turned;
}

}  // namespace

std::vector<Warp> poses_along(const Warp& warp, const std::vector<double>& loose, Freedom freedom, double rim,
                              double step) {
  std::vector<Warp> poses = {warp};
  const double turn = turn_of(loose, freedom, rim);
  if (std::abs(turn) * rim >= kTurns) {
    const double xi = std::clamp(-loose[1] / turn, -rim, rim), eta = std::clamp(loose[0] / turn, -rim, rim);
    const int count = static_cast<int>(std::ceil(2 * std::numbers::pi * rim / step));
    for (int k = 1; k < count; ++k)
      poses.push_back(turned_about(warp, xi, eta, 2 * std::numbers::pi * k / count));
    return poses;
  }
  const double length = std::hypot(loose[0], loose[1]);
  if (!(length > kTurns)) return poses;
  for (double way = step; way <= rim; way += step)
    for (const double side : {-way, way}) {
      const double xi = side * loose[0] / length, eta = side * loose[1] / length;
      Warp moved = warp;
      moved.center_x += warp.xx * xi + warp.xy * eta, moved.center_y += warp.yx * xi + warp.yy * eta;
      poses.push_back(moved);
    }
  return poses;
}

}  // namespace dic::match
