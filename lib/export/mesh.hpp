#pragma once

#include <cstdint>
#include <vector>

#include "export/selection.hpp"

namespace dic::exporting {

/// True if two cameras measured the result.
bool is_surface(const Result& result);

/// Nodes of a result as points in space, and the squares between four of them.
struct Mesh {
  std::vector<std::size_t> nodes;          ///< indices of the points' nodes in the grid
  std::vector<double> points;              ///< x, y, z of each
  std::vector<std::int64_t> connectivity;  ///< indices of points, four for each square
  std::size_t squares() const { return connectivity.size() / 4; }
};

/// With one camera the nodes inside the ROI, undeformed, in VTK's axes (y up). With two cameras the nodes
/// that were measured in the frame, where they are in it, in the axes of the measurement.
Mesh mesh_of(const Selection& selection, int frame);

/// Values of an array at some nodes.
template <typename T>
std::vector<T> values_at(const Result& result, const std::string& array, int frame,
                         const std::vector<std::size_t>& nodes) {
  const std::vector<T> all = result.values<T>(array, frame);
  std::vector<T> values;
  values.reserve(nodes.size());
  for (const std::size_t node : nodes) values.push_back(all[node]);
  return values;
}

}  // namespace dic::exporting
