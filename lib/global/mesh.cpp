#include "global/mesh.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numbers>

namespace dic::global {
namespace {

/// A node of an element and its factor.
struct Corner {
  int i, j;
  double factor;
};
using Element = std::vector<Corner>;

/// Second differences along both axes, and the mixed one, whose square counts twice: this makes the bending
/// independent of the directions of the axes.
const std::array<Element, 3>& elements() {
  constexpr double twist = std::numbers::sqrt2;
  static const std::array<Element, 3> all = {
      Element{{-1, 0, 1}, {0, 0, -2}, {1, 0, 1}}, Element{{0, -1, 1}, {0, 0, -2}, {0, 1, 1}},
      Element{{0, 0, twist}, {1, 0, -twist}, {0, 1, -twist}, {1, 1, twist}}};
  return all;
}

/// Calls visit(element, nodes) for every element whose nodes are all ok.
template <typename Visit>
void for_each_element(const Field& field, Visit&& visit) {
  const Grid& grid = field.grid();
  std::vector<std::int64_t> nodes;
  const auto complete = [&](const Element& element, int i, int j) {
    nodes.clear();
    for (const Corner& corner : element) {
      const int a = i + corner.i, b = j + corner.j;
      if (a < 0 || b < 0 || a >= grid.nx || b >= grid.ny) return false;
      nodes.push_back(std::int64_t{b} * grid.nx + a);
      if (!grid.inside[nodes.back()] || field.status[nodes.back()] != Status::ok) return false;
    }
    return true;
  };
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i)
      for (const Element& element : elements())
        if (complete(element, i, j)) visit(element, nodes);
}

}  // namespace

Mesh::Mesh(const Field& field)
    : nx(field.grid().nx), ny(field.grid().ny), step(field.grid().step), row_of(field.grid().nodes(), -1) {
  for_each_element(field, [&](const Element&, const std::vector<std::int64_t>& corners) {
    for (const std::int64_t node : corners) row_of[node] = 0;
  });
  for (std::int64_t node = 0; node < field.grid().nodes(); ++node) {
    if (row_of[node] < 0) continue;
    row_of[node] = size();
    nodes.push_back(node);
  }
  std::vector<Eigen::Triplet<double>> entries;
  for_each_element(field, [&](const Element& element, const std::vector<std::int64_t>& corners) {
    for (std::size_t a = 0; a < corners.size(); ++a)
      for (std::size_t b = 0; b < corners.size(); ++b)
        entries.emplace_back(row_of[corners[a]], row_of[corners[b]], element[a].factor * element[b].factor);
  });
  bending.resize(size(), size());
  bending.setFromTriplets(entries.begin(), entries.end());
  for (const int margin : margins())
    band.push_back(std::min(static_cast<int>(std::bit_width(static_cast<unsigned>(margin) + 1)), kBands) - 1);
}

SparseMatrix Mesh::subset_mean(double factor) const {
  std::vector<Eigen::Triplet<double>> entries;
  const double part = factor / (double(step) * step);
  const auto add_curvature = [&](Eigen::Index row, std::int64_t before, std::int64_t after) {
    if (row_of[before] < 0 || row_of[after] < 0) return;
    entries.emplace_back(row, row_of[before], part);
    entries.emplace_back(row, row_of[after], part);
    entries.emplace_back(row, row, -2 * part);
  };
  for (Eigen::Index row = 0; row < size(); ++row) {
    const std::int64_t node = nodes[row], i = node % nx, j = node / nx;
    entries.emplace_back(row, row, 1.0);
    if (part == 0) continue;
    if (i > 0 && i + 1 < nx) add_curvature(row, node - 1, node + 1);
    if (j > 0 && j + 1 < ny) add_curvature(row, node - nx, node + nx);
  }
  SparseMatrix mean(size(), size());
  mean.setFromTriplets(entries.begin(), entries.end());
  return mean;
}

std::vector<int> Mesh::margins() const {
  const int stride = nx + 2;
  std::vector<int> distance(std::size_t(stride) * (ny + 2), 0);
  const auto at = [&](Eigen::Index row) {
    return std::size_t(nodes[row] / nx + 1) * stride + std::size_t(nodes[row] % nx + 1);
  };
  // The first pass looks at the neighbours before each node, the second at those after it.
  for (const std::int64_t node : nodes) distance[at(row_of[node])] = nx + ny;
  const auto pass = [&](Eigen::Index row, std::ptrdiff_t sign) {
    int& value = distance[at(row)];
    for (const std::ptrdiff_t offset : {-stride - 1, -stride, -stride + 1, -1})
      value = std::min(value, distance[at(row) + sign * offset] + 1);
  };
  for (Eigen::Index row = 0; row < size(); ++row) pass(row, 1);
  for (Eigen::Index row = size(); row-- > 0;) pass(row, -1);
  std::vector<int> out;
  for (Eigen::Index row = 0; row < size(); ++row) out.push_back(distance[at(row)] - 1);
  return out;
}

}  // namespace dic::global
