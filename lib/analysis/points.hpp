#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <dic/shared/track_rules.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/noise.hpp"

namespace dic::analysis {

/// The points of a grid: its nodes inside the ROI, row by row.
struct Points {
  std::shared_ptr<const Grid> shared_grid;
  const Grid& grid;                    ///< *shared_grid
  std::vector<std::int64_t> node_of;   ///< grid node of every point
  std::vector<std::int64_t> point_at;  ///< point of every grid node; -1 outside the ROI
  std::vector<int> x, y;               ///< of every point, px of the original reference
  /// Residual of the best other match of every point in the original reference, grey levels, or kUnique,
  /// kNoAlternative (<dic/shared/trust_rules.hpp>); empty where no point has one.
  std::vector<float> alternatives;
  std::vector<NoisePatch> noise_patches;  ///< see spread_noise_patches; of all points, where these are a part

  explicit Points(Grid g)
      : shared_grid(std::make_shared<const Grid>(std::move(g))),
        grid(*shared_grid),
        node_of(grid.points()),
        point_at(grid.nodes(), -1),
        x(node_of.size()),
        y(node_of.size()) {
    std::int64_t node = 0, point = 0;
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i, ++node) {
        if (!grid.inside[node]) continue;
        point_at[node] = point;
        node_of[point] = node;
        x[point] = grid.x(i);
        y[point++] = grid.y(j);
      }
  }

  track::Cells cells() const { return {grid.x0, grid.y0, grid.step, grid.nx, grid.ny}; }
  std::int64_t size() const { return static_cast<std::int64_t>(node_of.size()); }
};

}  // namespace dic::analysis
