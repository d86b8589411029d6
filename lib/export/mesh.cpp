#include "export/mesh.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace dic::exporting {
namespace {

void add_squares(Mesh& mesh, std::size_t columns, std::size_t nodes) {
  std::vector<std::int64_t> number(nodes, -1);
  for (std::size_t k = 0; k < mesh.nodes.size(); ++k) number[mesh.nodes[k]] = static_cast<std::int64_t>(k);
  for (std::size_t k = 0; k + columns + 1 < nodes; ++k) {
    const std::int64_t corners[] = {number[k], number[k + 1], number[k + columns + 1], number[k + columns]};
    if (k % columns + 1 == columns || std::ranges::min(corners) < 0) continue;
    mesh.connectivity.insert(mesh.connectivity.end(), std::begin(corners), std::end(corners));
  }
}

void add_flat_points(Mesh& mesh, const Selection& selection) {
  const Grid& grid = selection.result.grid();
  const ResultInfo& info = selection.result.info();
  const double bottom = (info.image.height - 1) * info.length_factor();
  for (std::size_t k = 0; k < grid.inside.size(); ++k) {
    if (grid.inside[k] == 0) continue;
    mesh.nodes.push_back(k);
    const Position at = selection.position(k);
    mesh.points.insert(mesh.points.end(), {at.x, bottom - at.y, 0});
  }
}

void add_surface_points(Mesh& mesh, const Result& result, int frame) {
  const std::vector<double> x = result.values("X", frame), y = result.values("Y", frame),
                            z = result.values("Z", frame);
  const std::vector<double> u = result.values("U", frame), v = result.values("V", frame),
                            w = result.values("W", frame);
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!std::isfinite(x[k] + u[k] + z[k] + w[k])) continue;
    mesh.nodes.push_back(k);
    mesh.points.insert(mesh.points.end(), {x[k] + u[k], y[k] + v[k], z[k] + w[k]});
  }
}

}  // namespace

bool is_surface(const Result& result) { return result.has("Z") && result.has("W"); }

Mesh mesh_of(const Selection& selection, int frame) {
  const Grid& grid = selection.result.grid();
  Mesh mesh;
  if (is_surface(selection.result))
    add_surface_points(mesh, selection.result, frame);
  else
    add_flat_points(mesh, selection);
  add_squares(mesh, static_cast<std::size_t>(grid.nx), grid.inside.size());
  return mesh;
}

}  // namespace dic::exporting
