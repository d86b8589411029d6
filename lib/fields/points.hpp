#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <dic/shared/track_rules.hpp>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace dic::fields {

/// The nodes of a grid that are points of a measurement: those inside the ROI, row by row.
struct PointNodes {
  std::shared_ptr<const Grid> shared_grid;
  const Grid& grid;                    ///< *shared_grid
  std::vector<std::int64_t> node_of;   ///< grid node of every point
  std::vector<std::int64_t> point_at;  ///< point of every grid node; -1 outside the ROI

  explicit PointNodes(Grid nodes);

  /// Pixel of a point's node.
  int x(std::int64_t point) const { return grid.x(static_cast<int>(node_of[point] % grid.nx)); }
  int y(std::int64_t point) const { return grid.y(static_cast<int>(node_of[point] / grid.nx)); }
  track::Cells cells() const { return {grid.x0, grid.y0, grid.step, grid.nx, grid.ny}; }
  std::int64_t size() const { return static_cast<std::int64_t>(node_of.size()); }
};

/// Points in an image: one for each of the nodes of a grid that are points, at any position. Nodes are whole
/// pixels; points that were found by a measurement, in a later frame or in the image of another camera, lie
/// between pixels.
struct Points {
  /// The vector from a pixel to a point, px, at most half a pixel along each axis.
  struct Offset {
    double dx = 0, dy = 0;
  };

  std::shared_ptr<const PointNodes> nodes;
  std::vector<int> x, y;        ///< pixel nearest to every point, px
  std::vector<Offset> offsets;  ///< vector from that pixel to the point; empty: all points are whole pixels

  /// The nodes of the grid themselves.
  explicit Points(Grid grid);
  /// Other positions of the same nodes, by point, px. Positions that all are whole pixels have no offsets.
  Points(std::shared_ptr<const PointNodes> of_nodes, std::span<const double> at_x,
         std::span<const double> at_y);

  const Grid& grid() const { return nodes->grid; }
  std::int64_t size() const { return nodes->size(); }
  Offset offset(std::int64_t point) const { return offsets.empty() ? Offset{} : offsets[point]; }
  /// True if every point is where its node is.
  bool are_nodes() const;
};

}  // namespace dic::fields
