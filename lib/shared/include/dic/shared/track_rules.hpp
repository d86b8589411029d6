#pragma once

#include <cmath>
#include <cstdint>
#include <dic/shared/host_device.hpp>
#include <dic/shared/image_view.hpp>
#include <dic/shared/shape_parameters.hpp>
#include <dic/shared/status.hpp>
#include <dic/shared/uncertainty.hpp>

/// Rules for tracking a grid of points, on CPU and GPU: where a point starts, and whether it is refined again
/// or given up, depending on its neighbours on the grid.
///
/// A rule reads the points 0 .. count - 1, in the order of the rows of the grid, through an object with
///
///     Index                             a signed integer type
///     Status status(Index i)            of the result so far
///     float zncc(Index i)
///     ShapeParameters shape(Index i)    where the status is ok
///     bool trackable(Index i)           false: the reference has no usable subset there
///     int x(Index i), y(Index i)        the subset's centre in the reference, px
///     for_each_neighbour(Index i, visit)   calls visit(Index) for the up to 8 neighbours, in ascending order
///
/// and returns a decision about one point. All rules of a step are applied to one state of all points: the
/// result does not depend on the order.
namespace dic::track {

inline constexpr float kCertain = 0.9f;  ///< zncc from which a point needs no confirmation by neighbours
inline constexpr double kAgreement =
    2.0;  ///< largest distance, px, between a point and its prediction from a neighbour
/// Largest size of an island: points that agree only among themselves.
inline constexpr int kSmallIsland = 12;
/// Number of rows of nodes around a point that decide whether it, or one of its neighbours, belongs to a
/// small island.
inline constexpr int kIslandReach = kSmallIsland + 1;

/// True if a point with this status in the last frame may be missing in the next one without a reason to look
/// for it all over the image: it had left the image, or its texture was only noise, which matches anywhere by
/// chance and is given up wherever it is found.
DIC_HOST_DEVICE constexpr bool is_excused(Status last) {
  return last == Status::out_of_image || last == Status::flat;
}

/// Position of a material point of the original reference in the current reference.
struct MaterialPoint {
  double u = 0, v = 0;                   ///< displacement from the original reference to this one, px
  double dx = 0, dy = 0;                 ///< offset of the point from the subset's (whole-pixel) centre, px
  float variance_u = 0, variance_v = 0;  ///< variances of u and v, px^2
  Status status = Status::ok;            ///< ok, or why the point could not be followed this far
};

/// Values of a field at one point.
struct FieldValues {
  Status status = Status::ok;
  double u = 0, v = 0;             ///< displacement, px
  float sigma_u = 0, sigma_v = 0;  ///< px
};

/// Follows a point of the original reference into an image, by the displacement that was measured there. (x,
/// y): its pixel in the original reference; receives the pixel in the image.
DIC_HOST_DEVICE inline MaterialPoint followed(const FieldValues& found, Size image, int& x, int& y) {
  MaterialPoint m;
  m.status = found.status == Status::outlier ? Status::ok : found.status;
  if (m.status != Status::ok) return m;
  m.u = found.u;
  m.v = found.v;
  m.variance_u = found.sigma_u * found.sigma_u;
  m.variance_v = found.sigma_v * found.sigma_v;
  const double px = x + found.u, py = y + found.v;
  x = static_cast<int>(std::lround(px));
  y = static_cast<int>(std::lround(py));
  m.dx = px - x;
  m.dy = py - y;
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) m.status = Status::out_of_image;
  x = x < 0 ? 0 : x < image.width ? x : image.width - 1;
  y = y < 0 ? 0 : y < image.height ? y : image.height - 1;
  return m;
}

/// The cells around the nodes of a grid in the original reference.
struct Cells {
  int x0 = 0, y0 = 0, step = 1, nx = 0, ny = 0;

  /// The node whose cell contains a pixel, or else the nearest node.
  DIC_HOST_DEVICE std::int64_t node_of(int x, int y) const {
    return std::int64_t{index(y - y0, ny)} * nx + index(x - x0, nx);
  }

 private:
  DIC_HOST_DEVICE int index(int offset, int n) const {
    const int i = (offset + step / 2) / step;
    return i < 0 ? 0 : i < n ? i : n - 1;
  }
};

/// Calls mark(x, y) for the pixels of a later image, of width x height px, to which pixel (x, y) of the
/// original reference moves with its node `m`: 2 x 2 px, so that stretched cells leave no gaps.
template <typename Mark>
DIC_HOST_DEVICE void mark_moved_pixel(int x, int y, const MaterialPoint& m, int width, int height,
                                      Mark&& mark) {
  const int to_x = static_cast<int>(std::floor(x + m.u)), to_y = static_cast<int>(std::floor(y + m.v));
  for (int b = to_y; b <= to_y + 1; ++b)
    for (int a = to_x; a <= to_x + 1; ++a)
      if (a >= 0 && b >= 0 && a < width && b < height) mark(a, b);
}

/// Calls visit(point) for the up to 8 neighbours of a grid node that are points. point_at: [ny x nx], -1 for
/// nodes without a point.
template <typename Index, typename Visit>
DIC_HOST_DEVICE void for_each_neighbour(int nx, int ny, const Index* point_at, Index node, Visit&& visit) {
  const Index row = node / nx, column = node - row * nx;
  for (Index j = row > 0 ? row - 1 : 0; j <= row + 1 && j < ny; ++j)
    for (Index i = column > 0 ? column - 1 : 0; i <= column + 1 && i < nx; ++i) {
      const Index neighbour = point_at[j * nx + i];
      if (neighbour >= 0 && j * nx + i != node) visit(neighbour);
    }
}

// ---- shapes ----

/// The shape function of a neighbour, continued to a point (dx, dy) px away from it.
DIC_HOST_DEVICE constexpr ShapeParameters extrapolated(const ShapeParameters& s, double dx, double dy) {
  ShapeParameters out = s;
  out.u = s.u_at(dx, dy);
  out.v = s.v_at(dx, dy);
  out.ux += s.uxx * dx + s.uxy * dy;
  out.uy += s.uxy * dx + s.uyy * dy;
  out.vx += s.vxx * dx + s.vxy * dy;
  out.vy += s.vxy * dx + s.vyy * dy;
  return out;
}

/// The shape of point `from`, continued to point `to`.
template <typename Points, typename Index>
DIC_HOST_DEVICE ShapeParameters predicted_shape(const Points& points, Index from, Index to) {
  return extrapolated(points.shape(from), points.x(to) - points.x(from), points.y(to) - points.y(from));
}

/// True if point b is measured and close to its prediction by `shape`, the shape of point a.
template <typename Points, typename Index>
DIC_HOST_DEVICE bool confirms(const Points& points, const ShapeParameters& shape, Index a, Index b) {
  if (points.status(b) != Status::ok) return false;
  const double dx = points.x(b) - points.x(a), dy = points.y(b) - points.y(a);
  const ShapeParameters& found = points.shape(b);
  const double du = shape.u_at(dx, dy) - found.u, dv = shape.v_at(dx, dy) - found.v;
  return du * du + dv * dv <= kAgreement * kAgreement;
}

// ---- starts, recovery ----

/// The measured neighbour of highest zncc, the first of equal ones; -1 if none is measured.
template <typename Points, typename Index>
DIC_HOST_DEVICE Index best_neighbour(const Points& points, Index i) {
  Index best = -1;
  points.for_each_neighbour(i, [&](Index n) {
    if (points.status(n) == Status::ok && (best < 0 || points.zncc(n) > points.zncc(best))) best = n;
  });
  return best;
}

/// The point of the last frame whose shape gives the start of a point: itself if it was measured, otherwise
/// its best neighbour; -1 if there is none.
template <typename Points, typename Index>
DIC_HOST_DEVICE Index start_source(const Points& last, Index i) {
  return last.status(i) == Status::ok ? i : best_neighbour(last, i);
}

/// True if a point must be refined again from its best neighbour: it has a freshly measured neighbour, and it
/// is lost or contradicts that neighbour with a lower and uncertain zncc. Points that show mere noise were
/// given up as flat. fresh[i]: measured in the last wave.
template <typename Points, typename Fresh, typename Index>
DIC_HOST_DEVICE bool needs_recovery(const Points& points, const Fresh& fresh, Index i) {
  bool beside_fresh = false, contradicts = false;
  points.for_each_neighbour(i, [&](Index n) { beside_fresh = beside_fresh || fresh[n]; });
  if (!beside_fresh || !points.trackable(i)) return false;  // most points end here: the cheapest test first
  if (points.status(i) != Status::ok) return points.status(i) != Status::flat;
  if (points.zncc(i) >= kCertain) return false;
  points.for_each_neighbour(i, [&](Index n) {
    contradicts = contradicts ||
                  (fresh[n] && points.zncc(i) < points.zncc(n) && !confirms(points, points.shape(n), n, i));
  });
  return contradicts;
}

/// True if a new result replaces the last one of its point. A failure only replaces a missing result.
template <typename Result>
DIC_HOST_DEVICE bool replaces(const Result& result, const Result& known) {
  if (result.status != Status::ok) return known.iterations == 0;
  return known.status != Status::ok || result.zncc > known.zncc;
}

// ---- statuses ----

// A refinement may converge to a wrong place with a fair zncc, and its neighbours may start from there. Such
// points form small islands: the points around them are lost or contradict them.

/// Bit set about the neighbours of an uncertain point. Bit k: the k-th neighbour is uncertain too, and
/// agrees. Higher bits: kContested and kConfirmed. 0 for all points that are not uncertain.
using NeighbourSupport = std::uint16_t;
inline constexpr NeighbourSupport kContested = 1 << 8;  ///< a neighbour is lost or contradicts
inline constexpr NeighbourSupport kConfirmed = 1 << 9;  ///< a certain neighbour agrees

template <typename Points, typename Index>
DIC_HOST_DEVICE NeighbourSupport neighbour_support(const Points& points, Index i) {
  if (points.status(i) != Status::ok || points.zncc(i) >= kCertain) return 0;
  const ShapeParameters& shape = points.shape(i);
  unsigned supports = 0, bit = 1;
  points.for_each_neighbour(i, [&](Index n) {
    if (points.trackable(n)) {
      const bool agrees = confirms(points, shape, i, n);
      supports |= !agrees ? kContested : points.zncc(n) >= kCertain ? kConfirmed : bit;
    }
    bit <<= 1;
  });
  return static_cast<NeighbourSupport>(supports);
}

/// True if a point must be given up because it belongs to a small island that is contested and not confirmed.
/// supports[n]: neighbour_support of all points. island: scratch memory for kSmallIsland indices.
template <typename Points, typename AllSupports, typename Index, typename Island>
DIC_HOST_DEVICE bool unconfirmed(const Points& points, const AllSupports& supports, Index i,
                                 Island&& island) {
  unsigned found = 0;
  int size = 1;
  island[0] = i;
  for (int head = 0; head < size && !(found & kConfirmed); ++head) {
    unsigned bits = supports[island[head]];
    found |= bits;
    points.for_each_neighbour(island[head], [&](Index n) {
      bool joins = bits & 1;
      for (int k = 0; joins && k < size; ++k) joins = island[k] != n;
      if (joins && size < kSmallIsland)
        island[size++] = n;
      else if (joins)
        found |= kConfirmed;  // large islands count as confirmed
      bits >>= 1;
    });
  }
  return (found & (kContested | kConfirmed)) == kContested;
}

/// True if, along one axis, the part of a subset centred at `at` that is within the pixels 0 .. size - 1
/// leaves them when displaced.
DIC_HOST_DEVICE constexpr bool leaves(int at, double displacement, int radius, int size) {
  const int before = radius < at ? radius : at, after = radius < size - 1 - at ? radius : size - 1 - at;
  return at + displacement - before < -0.5 || at + displacement + after > size - 0.5;
}

/// True if a lost point left the image. Its position is predicted from the nearest measured point, `from`, by
/// steps on the grid (waves from all measured points; a point takes `from` of its first neighbour in the last
/// wave). The prediction is of first order, because a curvature predicts little at a distance.
template <typename Points, typename Index>
DIC_HOST_DEVICE bool has_left_image(const Points& points, Index i, Index from, int radius, int width,
                                    int height) {
  const ShapeParameters& s = points.shape(from);
  const double dx = points.x(i) - points.x(from), dy = points.y(i) - points.y(from);
  return leaves(points.x(i), s.u + s.ux * dx + s.uy * dy, radius, width) ||
         leaves(points.y(i), s.v + s.vx * dx + s.vy * dy, radius, height);
}

// ---- uncertainty ----

/// Points around a point, along the grid, a quarter to half a subset away; -1 if there is none.
template <typename Index>
struct Cross {
  Index left = -1, right = -1, above = -1, below = -1;
};
template <typename Index>
DIC_HOST_DEVICE Cross<Index> cross_around(int nx, int ny, const Index* point_at, Index node, int reach) {
  const Index row = node / nx, column = node - row * nx, down = Index{reach} * nx;
  return {column >= reach ? point_at[node - reach] : Index{-1},
          column + reach < nx ? point_at[node + reach] : Index{-1},
          row >= reach ? point_at[node - down] : Index{-1},
          row + reach < ny ? point_at[node + down] : Index{-1}};
}

/// Distance, nodes, to the points on both sides that tell how the field bends.
inline int bend_reach(int subset, int step) {
  const int nodes = static_cast<int>(std::lround(0.5 * subset / step));
  return nodes > 1 ? nodes : 1;
}

/// Factors of the bias of a subset by the bending of the field, along one axis: bias = factor * mean squared
/// distance of the subset's pixels * change of the slope per px (order 1), or * deviation of the curvature
/// from those on both sides (order 2). A parabola displaces the mean of a subset by a factor of one half;
/// kinks displace it by more, for order 2 by very much more.
inline constexpr float kBendOfSlopes = 0.75F, kBendOfCurvatures = 0.264F;

/// True if two points, `apart` px from each other, may be on one body: the difference of their displacements
/// is then not farther from the mean of what both slopes predict than these are from each other; beside a
/// hole, it lies outside of both. Judged by the slopes alone, bodies that turn against each other look like
/// one that bends. noise: variance of a displacement, px^2.
DIC_HOST_DEVICE inline bool may_bend(const Components& difference, const Components& slope,
                                     const Components& slope_there, float apart, float noise) {
  const float du = difference.u - 0.5F * apart * (slope.u + slope_there.u),
              dv = difference.v - 0.5F * apart * (slope.v + slope_there.v);
  const float bend_u = apart * (slope_there.u - slope.u), bend_v = apart * (slope_there.v - slope.v);
  return du * du + dv * dv <= bend_u * bend_u + bend_v * bend_v + 18 * noise;
}

/// Factor of the squared bend that a point shows on one side, if the field is torn, or the next point lost,
/// on the other side: there the bend is mostly stronger.
inline constexpr float kBesideLost = 4;
/// Largest squared bend that this factor makes, px^2: it is too rough to make a point too uncertain.
inline constexpr float kMostBesideLost = 0.01F;

/// Derivatives of the displacement along an axis.
DIC_HOST_DEVICE inline Components slope_along(const ShapeParameters& s, bool along_x) {
  return along_x ? components(s.ux, s.vx) : components(s.uy, s.vy);
}

DIC_HOST_DEVICE inline bool exceeds(const Components& bend, float least) {
  return bend.u * bend.u + bend.v * bend.v > least;
}

/// The bend along one axis at a measured point, from the points on both sides, if they are on the same body.
/// The functions add its square to `square`, px^2.
template <typename Points, typename Index>
class BendOfAxis {
 public:
  DIC_HOST_DEVICE BendOfAxis(const Points& points, Index i, Index before, Index after, bool along_x,
                             const NoiseModel& model)
      : points_(points),
        i_(i),
        before_(before),
        after_(after),
        along_x_(along_x),
        mean_square_(model.mean_square),
        here_(points.shape(i)) {}

  /// Order 2: by the deviation of the curvature from those on both sides.
  DIC_HOST_DEVICE void add_by_curvatures(Components& square) const {
    if (!measured(before_) || !measured(after_)) return;
    const ShapeParameters a = points_.shape(before_), b = points_.shape(after_);
    const float factor = kBendOfCurvatures * mean_square_;
    add(components(
            factor * (along_x_ ? here_.uxx - 0.5F * (a.uxx + b.uxx) : here_.uyy - 0.5F * (a.uyy + b.uyy)),
            factor * (along_x_ ? here_.vxx - 0.5F * (a.vxx + b.vxx) : here_.vyy - 0.5F * (a.vyy + b.vyy))),
        square);
  }

  /// Order 1: by the change of the slope.
  DIC_HOST_DEVICE void add_by_slopes(Components& square) const {
    const bool has_before = measured(before_), has_after = measured(after_);
    if (!has_before && !has_after) return;
    const ShapeParameters a = points_.shape(has_before ? before_ : i_),
                          b = points_.shape(has_after ? after_ : i_);
    const Components slope_a = slope_along(a, along_x_), slope_b = slope_along(b, along_x_),
                     slope_here = slope_along(here_, along_x_);
    const float noise = points_.own_sigma(i_) * points_.own_sigma(i_);
    // One side tells less exactly than both.
    Components both, to_before, to_after;
    if (has_before && has_after) both = bend_between(slope_a, slope_b, at(after_) - at(before_));
    if (has_before) to_before = bend_between(slope_a, slope_here, at(i_) - at(before_));
    if (has_after) to_after = bend_between(slope_here, slope_b, at(after_) - at(i_));
    const bool is_one_side = exceeds(to_before, 6 * noise) || exceeds(to_after, 6 * noise);
    if (!exceeds(both, noise) && !is_one_side) return;  // mere noise: most points end here
    const bool whole_before = has_before && is_on_body(before_, a, slope_here, slope_a, noise),
               whole_after = has_after && is_on_body(after_, b, slope_here, slope_b, noise);
    if (whole_before && whole_after) {
      if (exceeds(both, noise)) add(both, square);
    } else if (whole_before || whole_after) {
      const Components& bend = whole_before ? to_before : to_after;
      if (exceeds(bend, 6 * noise)) add_of_one_side(bend, whole_before ? after_ : before_, square);
    }
  }

 private:
  DIC_HOST_DEVICE bool measured(Index n) const { return n >= 0 && points_.status(n) == Status::ok; }
  DIC_HOST_DEVICE int at(Index n) const { return along_x_ ? points_.x(n) : points_.y(n); }

  DIC_HOST_DEVICE Components bend_between(const Components& from, const Components& to, int distance) const {
    const float factor = kBendOfSlopes * mean_square_ / static_cast<float>(distance);
    return {factor * (to.u - from.u), factor * (to.v - from.v)};
  }
  DIC_HOST_DEVICE bool is_on_body(Index n, const ShapeParameters& there, const Components& slope_here,
                                  const Components& slope_there, float noise) const {
    return may_bend(components(there.u - here_.u, there.v - here_.v), slope_here, slope_there, at(n) - at(i_),
                    noise);
  }
  DIC_HOST_DEVICE static void add(const Components& bend, Components& square) {
    square.u += bend.u * bend.u;
    square.v += bend.v * bend.v;
  }
  /// other: the point on the side that does not count, -1 if there is none.
  DIC_HOST_DEVICE void add_of_one_side(const Components& bend, Index other, Components& square) const {
    const bool torn = measured(other);
    const auto counted = [&](float component) {
      const float own = component * component, more = std::fmin(kBesideLost * own, kMostBesideLost);
      return other < 0 ? own : torn ? more : std::fmax(own, more);
    };
    square.u += counted(bend.u);
    square.v += counted(bend.v);
  }

  const Points& points_;
  const Index i_, before_, after_;
  const bool along_x_;
  const float mean_square_;
  const ShapeParameters here_;
};

/// Squared bias of a measured point by the bending of the field, px^2; a rough estimate for orders 1 and 2.
template <typename Points, typename Index>
DIC_HOST_DEVICE Components bend_at(const Points& points, Index i, const Cross<Index>& cross,
                                   const NoiseModel& model) {
  Components square;
  const auto add_axis = [&](Index before, Index after, bool along_x) {
    const BendOfAxis<Points, Index> axis(points, i, before, after, along_x, model);
    model.order == 2 ? axis.add_by_curvatures(square) : axis.add_by_slopes(square);
  };
  add_axis(cross.left, cross.right, true);
  add_axis(cross.above, cross.below, false);
  return square;
}

/// Points around a node of the grid.
template <typename Index>
struct NodesAround {
  int nx, ny;
  const Index* point_at;  ///< [ny x nx], -1 for nodes without a point
  Index node;

  /// The point `nodes` nodes away along an axis, -1 if there is none.
  DIC_HOST_DEVICE Index at(int nodes, bool along_x) const {
    return along_x ? beside(nodes, 0) : beside(0, nodes);
  }
  /// The point some columns and rows away, -1 if there is none.
  DIC_HOST_DEVICE Index beside(int columns, int rows) const {
    const Index row = node / nx, column = node - row * nx, to_row = row + rows, to_column = column + columns;
    const bool exists = to_row >= 0 && to_row < ny && to_column >= 0 && to_column < nx;
    return exists ? point_at[to_row * nx + to_column] : Index{-1};
  }
};

/// True if a point was measured in the active reference, which then is not the original one.
DIC_HOST_DEVICE inline bool is_later(const MaterialPoint& m) { return m.variance_u > 0 || m.variance_v > 0; }

/// The displacement of a measured point from the original reference, px.
DIC_HOST_DEVICE inline Components since_first(const MaterialPoint& m, const ShapeParameters& shape) {
  return components(m.u + shape.u_at(m.dx, m.dy), m.v + shape.v_at(m.dx, m.dy));
}

/// Factor of the bias by a bend that the displacements of points half a subset apart show, as kBendOfSlopes:
/// between that of a parabola, one half, and that of a kink, 3 / 4.
inline constexpr float kBendOfLine = 0.6F;
/// Factor of the squared change of a bend over half a subset: subsets of uneven texture see the change of a
/// bend that vanishes in their middle.
inline constexpr float kOddBend = 0.05F;

/// Five points along an axis, half a subset apart; the bend at the middle one is sought.
template <typename Index>
struct BendLine {
  static constexpr int kMiddle = 2;
  Index point[5] = {-1, -1, -1, -1, -1};
  bool known[5] = {};   ///< measured, and on the body of the middle one
  Components total[5];  ///< displacements from the original reference, px
  bool lost = false;    ///< true if a point beside the middle one is not measured

  DIC_HOST_DEVICE Components step(int from, int to) const {
    return {total[to].u - total[from].u, total[to].v - total[from].v};
  }
  DIC_HOST_DEVICE Components second_difference(int k) const {
    const Components before = step(k - 1, k), after = step(k, k + 1);
    return {after.u - before.u, after.v - before.v};
  }
};

/// The squared bias of the middle point, px^2; 0 if too few points are known. At borders, the bend beside the
/// point stands for its own. apart: distance of the points, px.
template <typename Index>
DIC_HOST_DEVICE Components bend_of_line(const BendLine<Index>& line, float apart, const NoiseModel& model) {
  const float scale = model.mean_square / (apart * apart);
  const bool two_sided = line.known[1] && line.known[3];
  if (model.order == 2) {
    if (!(line.known[0] && two_sided && line.known[4])) return {};
    const Components a = line.second_difference(1), here = line.second_difference(2),
                     b = line.second_difference(3);
    const float u = kBendOfCurvatures * scale * (here.u - 0.5F * (a.u + b.u)),
                v = kBendOfCurvatures * scale * (here.v - 0.5F * (a.v + b.v));
    return {u * u, v * v};
  }
  if (!two_sided && !line.known[0] && !line.known[4]) return {};
  // Indices that are no constants would put the line into the local memory of a GPU.
  const Components left = line.second_difference(1), middle = line.second_difference(2),
                   right = line.second_difference(3);
  const Components here = two_sided ? middle : line.known[0] ? left : right;
  Components square{here.u * here.u, here.v * here.v};
  const auto add_change = [&](const Components& there) {
    square.u = std::fmax(square.u, kOddBend * (there.u - here.u) * (there.u - here.u));
    square.v = std::fmax(square.v, kOddBend * (there.v - here.v) * (there.v - here.v));
  };
  if (two_sided && line.known[0]) add_change(left);
  if (two_sided && line.known[4]) add_change(right);
  const float factor = kBendOfLine * scale;
  return {factor * factor * square.u, factor * factor * square.v};
}

/// Squared bias of a measured point by the bending of the field since the original reference, px^2, from
/// displacements. In each of many small steps the bend is less than the noise; in their sum it shows.
template <typename Points, typename MaterialAt>
class BendOfSteps {
 public:
  using Index = typename Points::Index;

  /// material(i): the MaterialPoint of point i in the active reference.
  DIC_HOST_DEVICE BendOfSteps(const Points& points, Index i, const MaterialAt& material,
                              const NoiseModel& model)
      : points_(points), i_(i), material_(material), model_(model), own_sigma_(points.own_sigma(i)) {}

  DIC_HOST_DEVICE Components operator()(const NodesAround<Index>& lines) const {
    const Components x = along(lines, true), y = along(lines, false);
    return {x.u + y.u, x.v + y.v};
  }

 private:
  DIC_HOST_DEVICE Components along(const NodesAround<Index>& lines, bool along_x) const {
    BendLine<Index> line = line_along(lines, along_x);
    const Components seen = bend_along(line, along_x);
    if (!(seen.u + seen.v > 0.5F * own_sigma_ * own_sigma_)) return {};  // mere noise: most points end here
    keep_one_body(line, along_x);
    const Components bend = bend_along(line, along_x);
    // The bend beside a lost point is mostly stronger than on the side where points are measured.
    const float factor = line.lost && is_later(material_(i_)) ? kBesideLost : 1.0F;
    return {factor * bend.u, factor * bend.v};
  }

  DIC_HOST_DEVICE int at(Index i, bool along_x) const { return along_x ? points_.x(i) : points_.y(i); }

  DIC_HOST_DEVICE Components bend_along(const BendLine<Index>& line, bool along_x) const {
    const bool before = line.known[1], after = line.known[3];
    if (!before && !after) return {};
    const Index first = before ? line.point[1] : i_, last = after ? line.point[3] : i_;
    const int distance = at(last, along_x) - at(first, along_x);
    if (distance <= 0) return {};  // the material is folded
    return bend_of_line(line, (before && after ? 0.5F : 1.0F) * static_cast<float>(distance), model_);
  }

  DIC_HOST_DEVICE BendLine<Index> line_along(const NodesAround<Index>& lines, bool along_x) const {
    BendLine<Index> line;
    DIC_UNROLL
    for (int k = 0; k < 5; ++k) {
      const Index n = lines.at((k - line.kMiddle) * model_.reach, along_x);
      line.point[k] = n;
      line.known[k] = n >= 0 && points_.status(n) == Status::ok;
      if (line.known[k]) line.total[k] = since_first(material_(n), points_.shape(n));
      line.lost = line.lost || ((k == 1 || k == 3) && n >= 0 && !line.known[k]);
    }
    return line;
  }

  /// Leaves only points on the body of the middle one, as this step and as all steps show.
  DIC_HOST_DEVICE void keep_one_body(BendLine<Index>& line, bool along_x) const {
    const auto keep = [&](int near, int k) {
      line.known[k] =
          line.known[near] && line.known[k] && moves_with(line.point[near], line.point[k], along_x);
    };
    keep(2, 1), keep(1, 0), keep(2, 3), keep(3, 4);
    const Components back = line.step(2, 1), forth = line.step(2, 3);
    const bool torn_before = line.known[1] && !is_whole(back, line.known[3] ? line.step(3, 2) : back,
                                                        line.known[0] ? line.step(1, 0) : back),
               torn_after = line.known[3] && !is_whole(forth, line.known[1] ? line.step(1, 2) : forth,
                                                       line.known[4] ? line.step(3, 4) : forth);
    if (torn_before) line.known[1] = line.known[0] = false;
    if (torn_after) line.known[3] = line.known[4] = false;
  }

  /// True if, by this step alone, two points may be on one body, and neither is much less certain than the
  /// middle one: what is measured at an edge of the material tells nothing about the bend.
  DIC_HOST_DEVICE bool moves_with(Index a, Index b, bool along_x) const {
    const float most = 3 * own_sigma_;
    if (!(points_.own_sigma(a) <= most && points_.own_sigma(b) <= most)) return false;
    const ShapeParameters from = points_.shape(a), to = points_.shape(b);
    const auto slope = [along_x](const ShapeParameters& s) {
      return along_x ? components(s.ux, s.vx) : components(s.uy, s.vy);
    };
    return may_bend(components(to.u - from.u, to.v - from.v), slope(from), slope(to),
                    static_cast<float>(at(b, along_x) - at(a, along_x)), own_sigma_ * own_sigma_);
  }

  /// True if all steps together do not tear the material between the middle point and one beside it.
  /// across: difference of their displacements; here, there: that on the other side of each, in place of a
  /// slope.
  DIC_HOST_DEVICE bool is_whole(const Components& across, const Components& here,
                                const Components& there) const {
    return may_bend(across, here, there, 1, own_sigma_ * own_sigma_);
  }

  const Points& points_;
  Index i_;
  const MaterialAt& material_;
  const NoiseModel& model_;
  float own_sigma_;
};

/// The part of a squared bend that counts in sigma, px^2. Noise alone makes sigma more than a fifth larger at
/// 1 point in 100 with order 1, and at 7 in 100 with order 2.
DIC_HOST_DEVICE inline float bend_variance(float square, float noise_variance) {
  const float rest = square - 1.5F * noise_variance;
  return rest > 0 ? rest : 0;
}

/// True if a measured point itself has left the image, beyond the middle of the outermost pixels. A point
/// within three sigma of that limit counts as inside, because noise would decide. at_x, at_y: its subset's
/// centre.
DIC_HOST_DEVICE inline bool is_outside(int at_x, int at_y, const MaterialPoint& m,
                                       const ShapeParameters& shape, float sigma_u, float sigma_v,
                                       const NoiseModel& model) {
  const double x = at_x + m.dx + shape.u_at(m.dx, m.dy), y = at_y + m.dy + shape.v_at(m.dx, m.dy);
  const double by_x = std::fmin(3.0 * sigma_u, 0.5), by_y = std::fmin(3.0 * sigma_v, 0.5);
  return !(x >= -by_x && y >= -by_y && x <= model.width - 1 + by_x && y <= model.height - 1 + by_y);
}

/// Variance of a displacement by the bias of the interpolation, px^2. The bias is nearly a sine of the
/// fraction of a pixel, averaged over the subset; 0 if it is small compared with the noise.
DIC_HOST_DEVICE inline Components bias_variance(const ShapeParameters& shape, const NoiseModel& model,
                                                float noise_variance) {
  const float square_u = model.bias_u * model.bias_u, square_v = model.bias_v * model.bias_v;
  if (!(square_u + square_v > 0.05F * noise_variance)) return {};
  const auto sine = [](double x) {
    const auto t = static_cast<float>(x - std::nearbyint(x));
    return 8 * t * (1 - 2 * std::abs(t));
  };
  const Components left = wave_left(shape, model.radius);
  const float u = left.u * sine(shape.u), v = left.v * sine(shape.v);
  return {square_u * u * u, square_v * v * v};
}

/// Variance of a displacement by what a camera does to rows and columns, px^2, beyond its variance by noise.
/// A pattern that stays in place pulls points back by the slope of its autocorrelation, here an envelope of
/// that of white patterns, over the mean squared gradient of the texture.
DIC_HOST_DEVICE inline Components camera_variance(const ShapeParameters& shape, const Components& unit,
                                                  const Covariance& noise, const NoiseModel& model) {
  const float pixels = (2.0F * model.radius + 1) * (2.0F * model.radius + 1);
  const auto along = [pixels](double displacement, float pattern, float unit_sigma, float lines,
                              float known) {
    const auto apart = static_cast<float>(std::abs(displacement));
    const float slope = std::fmin(std::fmin(2.9F * apart, 1.37F), 1 / std::fmax(apart, 0.1F));
    const float pull = 0.5F * pixels * unit_sigma * unit_sigma * pattern * slope;
    return std::fmax(lines - known, 0.0F) + pull * pull;
  };
  return {along(shape.u, model.pattern_u, unit.u, model.lines_u, noise.uu),
          along(shape.v, model.pattern_v, unit.v, model.lines_v, noise.vv)};
}

/// Standard deviations of a displacement, px.
struct Sigmas {
  float u = 0, v = 0;
  float by_noise = 0;  ///< standard deviation by noise alone, the larger component

  DIC_HOST_DEVICE bool is_certain_by_noise() const { return by_noise <= kLargestNoiseSigma; }
  /// True if all other causes together leave the point certain.
  DIC_HOST_DEVICE bool is_certain_by_others() const {
    const float larger = u > v ? u : v;
    return larger * larger - by_noise * by_noise <= kLargestOtherSigma * kLargestOtherSigma;
  }
};

/// True if a point needs no confirmation, see is_certain_by_neighbours.
DIC_HOST_DEVICE inline bool is_certain(const Sigmas& sigmas) {
  return sigmas.is_certain_by_noise() && sigmas.is_certain_by_others();
}

/// Status of a measured point in the current image: ok, unless it left the image or its position is too
/// uncertain. at_x, at_y: its subset's centre.
DIC_HOST_DEVICE inline Status status_of(int at_x, int at_y, const MaterialPoint& m,
                                        const ShapeParameters& shape, const Sigmas& sigmas,
                                        const NoiseModel& model) {
  if (is_outside(at_x, at_y, m, shape, sigmas.u, sigmas.v, model)) return Status::out_of_image;
  const bool is_certain = sigmas.u <= kLargestSigma && sigmas.v <= kLargestSigma;
  return is_certain ? Status::ok : Status::low_correlation;
}

/// Variance that the systematic errors of a step add to those of the steps before, px^2, beyond their own:
/// they have the same sign in each of many small steps, so that they add up linearly. What `before` exceeds
/// the noise of one step by came from earlier steps.
DIC_HOST_DEVICE inline Components accumulated(const Covariance& before, const Covariance& noise,
                                              const Components& systematic) {
  const auto cross = [](float earlier, float own) { return 2 * std::sqrt(std::fmax(earlier, 0.0F) * own); };
  return {cross(before.uu - noise.uu, systematic.u), cross(before.vv - noise.vv, systematic.v)};
}

/// Standard deviations of a refined point. m: its position in the active reference; bend: see bend_at;
/// bend_of_all: see BendOfSteps.
template <typename Refined>
DIC_HOST_DEVICE Sigmas sigmas_of(const MaterialPoint& m, const Refined& point, const ShapeParameters& shape,
                                 const NoiseModel& model, const Components& bend,
                                 const Components& bend_of_all = {}) {
  const LocalNoise noise = noise_around(point, shape, model);
  NoiseCovariance step = noise_covariance(point, shape, noise, model);
  const float by_noise = (step.of_images + step.of_gradients).larger(), misfit = noise.misfit * noise.misfit;
  step = {misfit * step.of_images, misfit * step.of_gradients};
  const Covariance before{m.variance_u, 0, m.variance_v};
  const bool is_first = !is_later(m);
  const Covariance all =
      is_first ? step.of_images + step.of_gradients : after_step(before, shape, step, model.radius);
  const Covariance now = step.of_images + step.of_gradients;
  const float least = kLeastSigma * kLeastSigma;
  // A bias that is small beside the noise of one step is not small in the sum of many.
  const Components bias = bias_variance(shape, model, is_first ? now.uu + now.vv : 0.0F);
  const float unit_u = point.unit_sigma_u, unit_v = point.unit_sigma_v;
  const Components edges{unit_u * unit_u * noise.edges_u, unit_v * unit_v * noise.edges_v};
  const Components camera = camera_variance(shape, {unit_u, unit_v}, now, model);
  const Components other{bias.u + edges.u + camera.u, bias.v + edges.v + camera.v};
  const Components systematic{bend_variance(bend.u, now.uu) + other.u,
                              bend_variance(bend.v, now.vv) + other.v};
  const Components steps =
      is_first ? Components{} : accumulated(before.mapped_by(shape), step.of_images, systematic);
  // In a single step, the bend of the displacements alone makes no point too uncertain: beside edges of the
  // material, it is too rough for that. Over many steps, such points drift.
  const float most = is_first ? 0.98F * kLargestSigma * kLargestSigma : HUGE_VALF;
  const auto sigma = [least, most](float by_steps, float noise_now, float rest, float bend_square) {
    const float together = noise_now + rest + bend_variance(bend_square, noise_now);
    return static_cast<float>(std::sqrt(std::fmax(by_steps, std::fmin(together, most)) + least));
  };
  return {sigma(all.uu + systematic.u + steps.u, now.uu, other.u, bend_of_all.u),
          sigma(all.vv + systematic.v + steps.v, now.vv, other.v, bend_of_all.v),
          static_cast<float>(std::sqrt(by_noise))};
}

/// Standard deviation of a refined point by noise alone, px, the larger component.
template <typename Refined>
DIC_HOST_DEVICE float noise_sigma(const Refined& point, const ShapeParameters& shape, const LocalNoise& noise,
                                  const NoiseModel& model) {
  const NoiseCovariance covariance = noise_covariance(point, shape, noise, model);
  return std::sqrt((covariance.of_images + covariance.of_gradients).larger());
}

/// True if certain neighbours confirm a point whose noise exceeds kLargestNoiseSigma: the mean of their
/// predictions, weighted by their certainty, agrees with it. This happens where the border cuts a subset: its
/// point is at the end of the remaining pixels, and much less certain than those beside it.
template <typename Points, typename Index>
DIC_HOST_DEVICE bool certain_neighbours_agree(const Points& points, Index i, double noise_sigma_here,
                                              const NoiseModel& model) {
  if (!(noise_sigma_here <= kLargestConfirmedSigma)) return false;
  double weights = 0, u = 0, v = 0;
  points.for_each_neighbour(i, [&](Index n) {
    if (points.status(n) != Status::ok) return;
    const auto& point = points.refined(n);
    const ShapeParameters shape = points.shape(n);
    const double sigma = noise_sigma(point, shape, noise_around(point, shape, model), model);
    if (!(sigma <= kConfirmingSigma && sigma <= kMoreCertain * noise_sigma_here)) return;
    const ShapeParameters predicted = predicted_shape(points, n, i);
    const double weight = 1 / (sigma * sigma + kLeastSigma * kLeastSigma);
    weights += weight, u += weight * predicted.u, v += weight * predicted.v;
  });
  if (!(weights > 0)) return false;
  const ShapeParameters here = points.shape(i);
  const double du = here.u - u / weights, dv = here.v - v / weights;
  return du * du + dv * dv <= kConfirmedWithin * kConfirmedWithin;
}

/// The value at x = y = 0 of a plane through values of points, by weighted least squares. It is fitted as if
/// positions were uncertain by 1 px, so that points on one line suffice.
class PlaneThroughPoints {
 public:
  DIC_HOST_DEVICE void add(double weight, double x, double y, double u, double v) {
    ++count_, weights_ += weight;
    x_ += weight * x, y_ += weight * y, u_ += weight * u, v_ += weight * v;
    xx_ += weight * x * x, xy_ += weight * x * y, yy_ += weight * y * y;
    xu_ += weight * x * u, yu_ += weight * y * u, xv_ += weight * x * v, yv_ += weight * y * v;
  }
  DIC_HOST_DEVICE int count() const { return count_; }
  DIC_HOST_DEVICE double u() const { return at_origin(u_, xu_, yu_); }
  DIC_HOST_DEVICE double v() const { return at_origin(v_, xv_, yv_); }

 private:
  DIC_HOST_DEVICE double at_origin(double value, double x_value, double y_value) const {
    const double x = x_ / weights_, y = y_ / weights_;
    const double xx = xx_ - x * x_ + weights_, xy = xy_ - x * y_, yy = yy_ - y * y_ + weights_;
    const double x_rest = x_value - x * value, y_rest = y_value - y * value;
    const double determinant = xx * yy - xy * xy;
    const double slope_x = (yy * x_rest - xy * y_rest) / determinant,
                 slope_y = (xx * y_rest - xy * x_rest) / determinant;
    return value / weights_ - slope_x * x - slope_y * y;
  }

  int count_ = 0;
  double weights_ = 0, x_ = 0, y_ = 0, u_ = 0, v_ = 0;
  double xx_ = 0, xy_ = 0, yy_ = 0, xu_ = 0, yu_ = 0, xv_ = 0, yv_ = 0;
};

/// True if a point agrees with a plane through the displacements of the points around it, up to about 0.6
/// subsets away: most of them see other material. nodes: those around the point.
template <typename Points, typename Index>
DIC_HOST_DEVICE bool is_on_plane_of_neighbours(const Points& points, Index i, const NodesAround<Index>& nodes,
                                               const NoiseModel& model) {
  constexpr int kReach = 2;
  const int apart = (model.reach + 1) / 2;
  const ShapeParameters here = points.shape(i);
  PlaneThroughPoints plane;  // of the deviations from this point's prediction
  for (int row = -kReach; row <= kReach; ++row)
    for (int column = -kReach; column <= kReach; ++column) {
      const Index n = nodes.beside(column * apart, row * apart);
      if (n < 0 || n == i || points.status(n) != Status::ok) continue;
      const auto& point = points.refined(n);
      const ShapeParameters there = points.shape(n);
      const LocalNoise noise = noise_around(point, there, model);
      const double sigma = noise.misfit * noise_sigma(point, there, noise, model);
      if (!(sigma <= kLargestSigma)) continue;
      const double dx = points.x(n) - points.x(i), dy = points.y(n) - points.y(i);
      const double weight = 1 / (sigma * sigma + kLeastSigma * kLeastSigma);
      plane.add(weight, dx, dy, there.u - here.u_at(dx, dy), there.v - here.v_at(dx, dy));
    }
  if (plane.count() < kLeastAround) return false;
  const double du = plane.u(), dv = plane.v();
  return du * du + dv * dv <= kOnPlaneWithin * kOnPlaneWithin;
}

/// True if its neighbours confirm a point that is not certain by itself.
template <typename Points, typename Index>
DIC_HOST_DEVICE bool is_certain_by_neighbours(const Points& points, Index i, const NodesAround<Index>& nodes,
                                              const Sigmas& sigmas, const NoiseModel& model) {
  return (sigmas.is_certain_by_noise() || certain_neighbours_agree(points, i, sigmas.by_noise, model)) &&
         (sigmas.is_certain_by_others() || is_on_plane_of_neighbours(points, i, nodes, model));
}

}  // namespace dic::track
