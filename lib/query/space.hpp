#pragma once

#include <Eigen/Core>
#include <dic/fields.hpp>
#include <dic/probe.hpp>

/// Places of a field that two cameras measured, in space.
namespace dic::query {

/// A place on the surface, mm.
struct SpacePoint {
  Eigen::Vector3d at, moved;  ///< position in the reference and in the frame; NaN where nothing was measured
  Eigen::Vector3d sigma;      ///< standard deviations of the displacement

  explicit SpacePoint(const ProbeValues& values);
  bool is_known() const { return moved.allFinite(); }
  /// Largest variance that the displacement may have along a direction of length 1: errors along the axes may
  /// be correlated, because depth is the least certain of all.
  double variance_along(const Eigen::Vector3d& direction) const;
};

/// True if two cameras measured a field.
inline bool is_in_space(const Field& field) { return !field.stereo.x.empty(); }

/// Distance of two places and its change, mm.
ExtensometerValues distance_in_space(const SpacePoint& from, const SpacePoint& to);

/// Sets `offset` of the points of a line and returns the shape of the line.
LineShape shape_in_space(const Field& field, std::vector<LinePoint>& line);

}  // namespace dic::query
