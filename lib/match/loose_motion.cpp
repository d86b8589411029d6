#include "match/loose_motion.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dic::match {
namespace {

using pose::Freedom;
using pose::Warp;
using Motion = PoseScatter::Vector;

/// Share of a motion, in px at the rim, from which it is a turn.
constexpr double kTurns = 0.3;

/// Turn of a motion, radians per px.
double turn_of(const Motion& loose, Freedom freedom, double rim) {
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

/// Appends the poses along one motion.
void append_along(const Warp& warp, const Motion& loose, Freedom freedom, double rim, double step,
                  std::vector<Warp>& poses) {
  const double turn = turn_of(loose, freedom, rim);
  if (std::abs(turn) * rim >= kTurns) {
    const double xi = std::clamp(-loose[1] / turn, -rim, rim), eta = std::clamp(loose[0] / turn, -rim, rim);
    const int count = static_cast<int>(std::ceil(2 * std::numbers::pi * rim / step));
    for (int k = 1; k < count; ++k)
      poses.push_back(turned_about(warp, xi, eta, 2 * std::numbers::pi * k / count));
    return;
  }
  const double length = std::hypot(loose[0], loose[1]);
  if (!(length > kTurns)) return;
  for (double way = step; way <= rim; way += step)
    for (const double side : {-way, way}) {
      const double xi = side * loose[0] / length, eta = side * loose[1] / length;
      Warp moved = warp;
      moved.center_x += warp.xx * xi + warp.xy * eta, moved.center_y += warp.yx * xi + warp.yy * eta;
      poses.push_back(moved);
    }
}

}  // namespace

void separate_turn(std::vector<Motion>& loose, Freedom freedom, double rim) {
  Motion turning = Motion::Zero(loose.front().size());
  for (const Motion& motion : loose) turning += turn_of(motion, freedom, rim) * motion;
  if (!(turning.norm() > 0)) return;
  turning.normalize();
  // The motion that resembles the turn most is replaced by it.
  std::ranges::sort(loose, std::ranges::greater{}, [&](const Motion& m) { return std::abs(m.dot(turning)); });
  loose.front() = turning;
  for (std::size_t k = 1; k < loose.size(); ++k)
    for (std::size_t before = 0; before < k; ++before) {
      loose[k] -= loose[k].dot(loose[before]) * loose[before];
      loose[k].normalize();
    }
}

Warp moved_along(const Warp& warp, const Motion& motion, Freedom freedom, double rim, double way) {
  double free[pose::kGeometric] = {}, step[pose::kGeometric] = {};
  for (int k = 0; k < motion.size(); ++k) free[k] = way * motion[k] / (k < 2 ? 1 : rim);
  pose::geometric_step(freedom, free, step);
  return pose::composed(warp, step);
}

std::vector<Warp> poses_along(const Warp& warp, std::vector<Motion> loose, Freedom freedom, double rim,
                              double step) {
  separate_turn(loose, freedom, rim);
  std::vector<Warp> poses = {warp};
  for (const Motion& motion : loose) append_along(warp, motion, freedom, rim, step, poses);
  return poses;
}

}  // namespace dic::match
