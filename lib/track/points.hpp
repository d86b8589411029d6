#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/fields.hpp>
#include <dic/shared/track_rules.hpp>
#include <vector>

namespace dic::track {

/// The points of a grid: its nodes inside the ROI, row by row.
struct Points {
  Grid grid;
  std::vector<std::int64_t> node_of;   ///< grid node of every point
  std::vector<std::int64_t> point_at;  ///< point of every grid node; -1 outside the ROI
  std::vector<int> x, y;               ///< of every point, px of the original reference

  explicit Points(Grid g) : grid(std::move(g)), point_at(grid.nodes(), -1) {
    for (std::int64_t node = 0; node < grid.nodes(); ++node) {
      if (!grid.inside[node]) continue;
      point_at[node] = size();
      node_of.push_back(node);
      x.push_back(grid.x(static_cast<int>(node % grid.nx)));
      y.push_back(grid.y(static_cast<int>(node / grid.nx)));
    }
  }

  std::int64_t size() const { return static_cast<std::int64_t>(node_of.size()); }

  /// Calls visit(point) for the up to 8 neighbours of a point on the grid.
  template <typename Visit>
  void visit_neighbours(std::int64_t point, const Visit& visit) const {
    const int i = static_cast<int>(node_of[point] % grid.nx), j = static_cast<int>(node_of[point] / grid.nx);
    for (int b = std::max(0, j - 1); b <= std::min(grid.ny - 1, j + 1); ++b)
      for (int a = std::max(0, i - 1); a <= std::min(grid.nx - 1, i + 1); ++a) {
        const std::int64_t neighbour = point_at[static_cast<std::int64_t>(b) * grid.nx + a];
        if (neighbour >= 0 && neighbour != point) visit(neighbour);
      }
  }
};

}  // namespace dic::track
