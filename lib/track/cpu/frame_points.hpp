#pragma once

#include <dic/shared/departure_rules.hpp>
#include <dic/shared/track_rules.hpp>
#include <dic/shared/trust_rules.hpp>
#include <vector>

#include "track/cpu/host_reference.hpp"

namespace dic::track {

/// The points of a frame as the rules of tracking see them.
struct FramePoints {
  using Index = std::int64_t;
  const PointNodes& points;
  const HostReference& reference;
  std::span<const RefinedPoint> results;

  Status status(Index i) const { return results[i].status; }
  float zncc(Index i) const { return results[i].zncc; }
  const ShapeParameters& shape(Index i) const { return results[i].shape; }
  const RefinedPoint& refined(Index i) const { return results[i]; }
  float residual(Index i) const { return results[i].residual_sd; }
  float own_sigma(Index i) const {
    return track::own_sigma(results[i].residual_sd, results[i].unit_sigma_u, results[i].unit_sigma_v);
  }
  bool trackable(Index i) const { return reference.trackable(i); }
  int x(Index i) const { return reference.subsets.x[i]; }
  int y(Index i) const { return reference.subsets.y[i]; }
  Size image() const { return reference.image().size(); }
  SubsetBox box(Index i) const { return reference.box(i); }
  Index measured_towards(Index i, Direction towards) const {
    const Grid& grid = points.grid;
    return trusted_towards(grid.nx, grid.ny, points.point_at.data(), points.node_of[i], towards,
                           kDepartureReach, [this](Index n) { return status(n) == Status::ok; });
  }
  template <typename Visit>
  void for_each_neighbour(Index i, Visit&& visit) const {
    const Grid& grid = points.grid;
    track::for_each_neighbour(grid.nx, grid.ny, points.point_at.data(), points.node_of[i], visit);
  }
};

}  // namespace dic::track
