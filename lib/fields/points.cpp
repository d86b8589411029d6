#include "fields/points.hpp"

#include <cmath>

namespace dic::fields {

PointNodes::PointNodes(Grid nodes)
    : shared_grid(std::make_shared<const Grid>(std::move(nodes))),
      grid(*shared_grid),
      node_of(grid.points()),
      point_at(grid.nodes(), -1) {
  std::int64_t point = 0;
  for (std::int64_t node = 0; node < grid.nodes(); ++node) {
    if (!grid.inside[node]) continue;
    point_at[node] = point;
    node_of[point++] = node;
  }
}

Points::Points(Grid grid)
    : nodes(std::make_shared<const PointNodes>(std::move(grid))), x(nodes->size()), y(nodes->size()) {
  for (std::int64_t point = 0; point < size(); ++point) {
    x[point] = nodes->x(point);
    y[point] = nodes->y(point);
  }
}

Points::Points(std::shared_ptr<const PointNodes> of_nodes, std::span<const double> at_x,
               std::span<const double> at_y)
    : nodes(std::move(of_nodes)), x(nodes->size()), y(nodes->size()), offsets(nodes->size()) {
  bool is_whole = true;
  for (std::int64_t point = 0; point < size(); ++point) {
    x[point] = static_cast<int>(std::lround(at_x[point]));
    y[point] = static_cast<int>(std::lround(at_y[point]));
    offsets[point] = {at_x[point] - x[point], at_y[point] - y[point]};
    is_whole = is_whole && offsets[point].dx == 0 && offsets[point].dy == 0;
  }
  if (is_whole) offsets.clear();
}

bool Points::are_nodes() const {
  if (!offsets.empty()) return false;
  for (std::int64_t point = 0; point < size(); ++point)
    if (x[point] != nodes->x(point) || y[point] != nodes->y(point)) return false;
  return true;
}

}  // namespace dic::fields
