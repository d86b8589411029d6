#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <dic/shared/host_device.hpp>
#include <dic/shared/shape_parameters.hpp>
#include <dic/shared/subset_part.hpp>
#include <dic/shared/track_rules.hpp>

/// Rules, for CPU and GPU, for points whose subset does not move as one: at a crack, at the edge of a body or
/// of an object in front, at the border of the current image. Such points are found by a residual that is
/// larger than in their surroundings. They are measured again with a part of the subset, starting from the
/// shape of a neighbour on their side (subset splitting, Poissant & Barthelat 2010, here with half-planes and
/// wedges, and without a model of the crack).
namespace dic::track {

// ---- doubtful points ----

/// Normal level of the residuals of refined subsets in a tile of the grid.
struct ResidualLevel {
  float lower = 0, median = 0;  ///< lower quartile and median, grey levels
  bool known = false;           ///< false if too few points are measured
};

/// Number of residuals sampled in a tile, along each axis.
inline constexpr int kTileSamples = 8;
/// Smallest number of samples that give a level.
inline constexpr int kLeastSamples = 6;
/// zncc from which a match is not doubtful: the rest is interpolation error, which is larger at the border of
/// the image. Motions that differ by a fortieth of a speckle within a subset leave a residual of this size.
inline constexpr float kExact = 0.9997f;

/// Nodes along a side of a tile: two subsets, so that nodes across a straight crack are a minority.
DIC_HOST_DEVICE constexpr int tile_side(int subset, int step) {
  const int nodes = (2 * subset + step - 1) / step;
  return nodes > 4 ? nodes : 4;
}
/// Distance of two samples, nodes.
DIC_HOST_DEVICE constexpr int sample_spacing(int side) { return (side + kTileSamples - 1) / kTileSamples; }

/// The tiles of a grid of nx x ny nodes.
struct Tiles {
  int side, nx, ny;

  Tiles(int grid_nx, int grid_ny, int subset, int step)
      : side(tile_side(subset, step)), nx((grid_nx + side - 1) / side), ny((grid_ny + side - 1) / side) {}

  DIC_HOST_DEVICE int count() const { return nx * ny; }
  /// The tile of a node of the grid. Computes in the type of the node, because GPUs are slow at 64-bit
  /// division.
  template <typename Node>
  DIC_HOST_DEVICE int of(Node node, int grid_nx) const {
    return static_cast<int>(node / grid_nx / side * nx + node % grid_nx / side);
  }
};

/// Number of samples of a tile.
inline constexpr int kSamples = kTileSamples * kTileSamples;

/// The node of sample k of a tile, on a grid of nx x ny nodes; -1 if the tile has fewer samples.
DIC_HOST_DEVICE inline std::int64_t sample_node(const Tiles& tiles, int tile, int k, int nx, int ny) {
  const int spacing = sample_spacing(tiles.side);
  const int i = k % kTileSamples * spacing, j = k / kTileSamples * spacing;
  const int x = tile % tiles.nx * tiles.side + i, y = tile / tiles.nx * tiles.side + j;
  return i < tiles.side && j < tiles.side && x < nx && y < ny ? std::int64_t{y} * nx + x : -1;
}

/// Ranks, from 0, of the lower quartile and the median among `count` sorted values.
DIC_HOST_DEVICE constexpr int lower_rank(int count) { return count / 4; }
DIC_HOST_DEVICE constexpr int median_rank(int count) { return count / 2; }

/// Number of tiles that determine the level around a tile, and the rank of their median.
inline constexpr int kTilesAround = 9;
DIC_HOST_DEVICE constexpr int around_rank(int count) { return (count - 1) / 2; }

/// The k-th of the tiles around a tile (and itself); -1 if it does not exist.
DIC_HOST_DEVICE inline int tile_around(const Tiles& tiles, int tile, int k) {
  const int i = tile % tiles.nx + k % 3 - 1, j = tile / tiles.nx + k / 3 - 1;
  return k < kTilesAround && i >= 0 && j >= 0 && i < tiles.nx && j < tiles.ny ? j * tiles.nx + i : -1;
}

/// Factors of the median residual that count as normal: for whole subsets, large enough that few are measured
/// again needlessly; for parts, where another motion is near, small enough that few accepted parts include
/// it.
inline constexpr double kWholeMargin = 1.15, kPartMargin = 0.95;

/// The largest residual that is normal for a measurement with `pixels`. The residual of white noise alone
/// varies by 1 / sqrt(2 pixels) from subset to subset, that of real surfaces by more; the quartile tells how
/// much.
DIC_HOST_DEVICE inline float normal_residual(const ResidualLevel& level, double pixels, double margin) {
  const double spread = level.median - level.lower;
  return static_cast<float>(level.median * (margin + 3 / std::sqrt(2 * pixels)) + 4 * spread);
}

/// True if a measured point must be measured again.
DIC_HOST_DEVICE inline bool is_doubtful(float zncc, float residual, const ResidualLevel& level, double pixels,
                                        double margin = kWholeMargin) {
  return level.known && zncc < kExact && residual > normal_residual(level, pixels, margin);
}

// ---- parts of subsets ----

/// A direction on the grid: along a row, a column or a diagonal, or half-way between them.
struct Direction {
  int dx, dy;
};
inline constexpr int kDirections = 16;
inline constexpr int kNeighbours = 8;  ///< the first directions, towards the next nodes
DIC_HOST_DEVICE constexpr Direction direction(int k) {
  if (k < kNeighbours) {
    const int cell = k < 4 ? k : k + 1;
    return {cell % 3 - 1, cell / 3 - 1};
  }
  const int i = k & 1 ? 1 : -1, j = k & 2 ? 1 : -1;
  return k & 4 ? Direction{2 * i, j} : Direction{i, 2 * j};
}

/// Rounds of measurements with ever smaller parts: the whole subset, then half-planes and wedges.
inline constexpr int kSplitRounds = 8;
/// True if the part of a round is a wedge of 90 degrees. Beside a curved edge or in a corner, a half-plane
/// may hold two motions.
DIC_HOST_DEVICE constexpr bool is_wedge(int round) { return round >= 3 && round % 2 == 1; }
/// Width, px, of the part beyond the centre on the far side, in a round.
DIC_HOST_DEVICE constexpr int kept_beyond_centre(int round, int radius) {
  return round == 1 ? 3 * radius / 4 : radius >> round / 2;
}
/// Most iterations of a measurement with a part: more would not help, because its start is either good or
/// wrong.
inline constexpr int kSplitIterations = 10;
/// Distance, nodes, up to which points lend their shape: subsets farther apart share few pixels.
DIC_HOST_DEVICE constexpr int split_reach(int radius, int step) { return radius / step + 3; }

/// The first trusted point in a direction from a node of a grid of nx x ny nodes; -1 if there is none.
/// point_at: [ny x nx], -1 for nodes without a point.
template <typename Index, typename IsTrusted>
DIC_HOST_DEVICE Index trusted_towards(int nx, int ny, const Index* point_at, Index node, Direction towards,
                                      int reach, IsTrusted&& is_trusted) {
  int x = static_cast<int>(node % nx), y = static_cast<int>(node / nx);
  const int longest =
      std::abs(towards.dx) > std::abs(towards.dy) ? std::abs(towards.dx) : std::abs(towards.dy);
  for (int k = longest; k <= reach; k += longest) {
    x += towards.dx;
    y += towards.dy;
    if (x < 0 || y < 0 || x >= nx || y >= ny) return -1;
    const Index point = point_at[Index{y} * nx + x];
    if (point >= 0 && is_trusted(point)) return point;
  }
  return -1;
}

/// The pixels towards (x, y), and `beyond` px on the other side of the centre.
DIC_HOST_DEVICE inline HalfPlane half_plane(double x, double y, int beyond) {
  return {x, y, -beyond * std::sqrt(x * x + y * y)};
}

/// The square subset of a point.
struct SquareSubset {
  std::int64_t point;
  int x, y;    ///< centre, reference pixels
  int radius;  ///< px
};

/// The part of a subset that lies towards a direction, in a round.
DIC_HOST_DEVICE inline SubsetPart part_towards(const SquareSubset& subset, Direction towards, int round) {
  const int radius = subset.radius;
  SubsetPart part{subset.point, -radius, radius, -radius, radius};
  const int x = towards.dx, y = towards.dy, beyond = kept_beyond_centre(round, radius);
  if (is_wedge(round)) {
    part.sides[0] = half_plane(x - y, x + y, beyond);
    part.sides[1] = half_plane(x + y, y - x, beyond);
  } else if (round > 0) {
    part.sides[0] = half_plane(x, y, beyond);
  }
  return part;
}

/// Distance, px, by which a point may lie beyond the middle of the outermost pixels, so that the start of a
/// point exactly there is accepted.
inline constexpr double kAtBorder = 0.02;

/// Cuts from a part of a subset what is outside the current image after `shape` has moved it.
DIC_HOST_DEVICE inline void clip_to_current(SubsetPart& part, const SquareSubset& subset,
                                            const ShapeParameters& shape, Size image) {
  const int radius = subset.radius;
  const auto bend = [radius](double xx, double xy, double yy) {
    return radius * radius * (std::abs(xx) / 2 + std::abs(xy) + std::abs(yy) / 2);
  };
  const auto clip = [&](HalfPlane& low, HalfPlane& high, double centre, double along_x, double along_y,
                        double bulge, int size) {
    const double reach = radius * (std::abs(along_x) + std::abs(along_y)) + bulge;
    if (centre - reach < -kAtBorder) low = {along_x, along_y, bulge - centre - kAtBorder};
    if (centre + reach > size - 1 + kAtBorder)
      high = {-along_x, -along_y, bulge + centre - (size - 1) - kAtBorder};
  };
  clip(part.sides[2], part.sides[3], subset.x + shape.u, 1 + shape.ux, shape.uy,
       bend(shape.uxx, shape.uxy, shape.uyy), image.width);
  clip(part.sides[4], part.sides[5], subset.y + shape.v, shape.vx, 1 + shape.vy,
       bend(shape.vxx, shape.vxy, shape.vyy), image.height);
}

/// A part and its number of pixels; 0 pixels if there is nothing to measure.
struct CountedPart {
  SubsetPart part;
  int pixels = 0;
};

/// The part with which a doubtful or lost point is measured in a round. shape: the shape of a point in the
/// given direction, continued to this point. At least half of the subset must be inside the current image.
DIC_HOST_DEVICE inline CountedPart part_to_measure(const SquareSubset& subset, Direction towards, int round,
                                                   const ShapeParameters& shape, Size image) {
  const int side = 2 * subset.radius + 1;
  CountedPart whole{part_towards(subset, towards, 0)};
  clip_to_current(whole.part, subset, shape, image);
  whole.pixels = shrink_to_pixels(whole.part);
  if (whole.pixels < side * side / 2) return CountedPart();
  if (round == 0) return whole;
  CountedPart part{part_towards(subset, towards, round)};
  clip_to_current(part.part, subset, shape, image);
  part.pixels = shrink_to_pixels(part.part);
  return part.pixels < kLeastPart * side * side ? CountedPart() : part;
}

/// True if two starts of a whole subset lead to the same place.
DIC_HOST_DEVICE inline bool same_start(const ShapeParameters& a, const ShapeParameters& b) {
  const double du = a.u - b.u, dv = a.v - b.v;
  return du * du + dv * dv < 0.25;
}

/// The largest accepted residual of a measurement with a part of `pixels` pixels.
DIC_HOST_DEVICE inline float most_part_residual(const ResidualLevel& level, int pixels) {
  return level.known ? normal_residual(level, pixels, kPartMargin) : HUGE_VALF;
}

/// True if a measurement with a part of the subset is accepted. predicted: the shape that it started from.
template <typename Result>
DIC_HOST_DEVICE bool is_accepted(const Result& result, const ShapeParameters& found,
                                 const ShapeParameters& predicted, const ResidualLevel& level, int pixels) {
  if (result.status != Status::ok) return false;
  const double du = found.u - predicted.u, dv = found.v - predicted.v;
  return du * du + dv * dv <= kAgreement * kAgreement &&
         !is_doubtful(result.zncc, result.residual_sd, level, pixels, kPartMargin);
}

/// The round of the smallest parts. It is measured first. They lie, but for a few pixels, in all other parts
/// of their direction: these are only measured if the smallest one does not refute the direction. Most
/// attempts of other rounds would fail.
inline constexpr int kProbingRound = kSplitRounds - 1;
/// Standard deviation by noise, px, from which a smallest part that does not settle refutes its direction.
/// The largest part, with up to three times as many pixels, has about a third of this deviation.
inline constexpr float kNoisyPart = 2 * kLargestNoiseSigma;

/// True if a measurement with the smallest part shows that larger parts in its direction are not worth
/// measuring. The arguments are those of is_accepted(). Nothing is known where too few pixels or no contrast
/// were left.
template <typename Result>
DIC_HOST_DEVICE bool is_refuted(const Result& result, const ShapeParameters& found,
                                const ShapeParameters& predicted, const ResidualLevel& level, int pixels) {
  const float unit_sigma =
      result.unit_sigma_u > result.unit_sigma_v ? result.unit_sigma_u : result.unit_sigma_v;
  switch (result.status) {
    case Status::ok:
      return !is_accepted(result, found, predicted, level, pixels);
    case Status::low_correlation:
    case Status::diverged:
      return true;
    case Status::not_converged:
      return unit_sigma * level.median > kNoisyPart;
    default:
      return false;
  }
}

/// A doubtful point that no part explains keeps its value if all neighbours predict it within this distance,
/// px.
inline constexpr double kSplitAgreement = 0.3;

/// True if all trusted points around a doubtful one, at least one, predict its value. towards(direction): the
/// trusted point in this direction, or -1.
template <typename Points, typename Index, typename Towards>
DIC_HOST_DEVICE bool is_confirmed(const Points& points, Index i, Towards&& towards) {
  const ShapeParameters& found = points.shape(i);
  bool any = false;
  for (int k = 0; k < kNeighbours; ++k) {
    const Index source = towards(direction(k));
    if (source < 0) continue;
    const ShapeParameters predicted = predicted_shape(points, source, i);
    const double du = found.u - predicted.u, dv = found.v - predicted.v;
    if (du * du + dv * dv > kSplitAgreement * kSplitAgreement) return false;
    any = true;
  }
  return any;
}

}  // namespace dic::track
