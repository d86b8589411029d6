#pragma once

#include <cstdint>
#include <dic/shared/host_device.hpp>
#include <dic/shared/image_view.hpp>
#include <dic/shared/shape_parameters.hpp>
#include <dic/shared/split_rules.hpp>
#include <dic/shared/status.hpp>
#include <dic/shared/track_rules.hpp>

/// Rule, for CPU and GPU, for lost points that have certainly left the current image. The search finds chance
/// matches for them inside the image, from which a refinement takes all its iterations and fails. A point
/// that comes back is recovered from its neighbours.
namespace dic::track {

/// Distance, nodes, up to which measured points tell where a lost point is. Other GPUs' points are known this
/// far.
inline constexpr int kDepartureReach = kSmallIsland;
/// Distance, px, by which a subset must leave the image, so that errors of the prediction do not matter.
inline constexpr double kSurelyOutside = kAgreement;

/// The rectangle of a subset's pixels, reference pixels, inclusive.
struct SubsetBox {
  int left, right, top, bottom;
};

/// True if a pixel of the box, displaced by (u, v), is at least kSurelyOutside px outside the image.
DIC_HOST_DEVICE constexpr bool surely_leaves(const SubsetBox& box, double u, double v, Size image) {
  const double most = 0.5 + kSurelyOutside;
  return box.left + u < -most || box.right + u > image.width - 1 + most || box.top + v < -most ||
         box.bottom + v > image.height - 1 + most;
}

/// True if the nearest measured points along rows, columns and diagonals of the grid, at least one of them
/// towards the middle of the image, all predict that the subset of a lost point leaves the image. points: as
/// for <dic/shared/track_rules.hpp>, with
///
///     Size image()          of all images, px
///     SubsetBox box(Index i)
///     Index measured_towards(Index i, Direction towards)   the nearest measured point within kDepartureReach
///                                                          nodes, or -1
template <typename Points, typename Index>
DIC_HOST_DEVICE bool has_surely_left(const Points& points, Index i) {
  const SubsetBox box = points.box(i);
  const Size image = points.image();
  bool any = false;
  const auto contradicts = [&](Direction towards) {
    const Index from = points.measured_towards(i, towards);
    if (from < 0) return false;
    any = true;
    const ShapeParameters& s = points.shape(from);
    const double dx = points.x(i) - points.x(from), dy = points.y(i) - points.y(from);
    return !surely_leaves(box, s.u + s.ux * dx + s.uy * dy, s.v + s.vx * dx + s.vy * dy, image);
  };
  // Measured points lie towards the middle of the image: most points that have not left it end here.
  const int x = 2 * points.x(i) < image.width ? 1 : -1, y = 2 * points.y(i) < image.height ? 1 : -1;
  if (contradicts({x, 0}) || contradicts({0, y}) || contradicts({x, y}) || !any) return false;
  return !contradicts({-x, 0}) && !contradicts({0, -y}) && !contradicts({-x, -y}) && !contradicts({-x, y}) &&
         !contradicts({x, -y});
}

}  // namespace dic::track
