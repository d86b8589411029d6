#include "global/node_means.hpp"

#include <algorithm>

namespace dic::global {

NodeMeans::NodeMeans(const Mesh& mesh, const Eigen::ArrayXd& values)
    : mesh_(mesh), sums_(std::size_t(mesh.nx + 1) * (mesh.ny + 1)) {
  for (int j = 0; j < mesh.ny; ++j) {
    Sums row;
    for (int i = 0; i < mesh.nx; ++i) {
      const Eigen::Index at = mesh.row_of[std::size_t(j) * mesh.nx + i];
      if (at >= 0) row.value += values[at], row.count += 1;
      const Sums& above = above_left(i + 1, j);
      above_left(i + 1, j + 1) = {above.value + row.value, above.count + row.count};
    }
  }
}

double NodeMeans::around(Eigen::Index row, int radius) const {
  const auto i = static_cast<int>(mesh_.nodes[row] % mesh_.nx),
             j = static_cast<int>(mesh_.nodes[row] / mesh_.nx);
  const int left = std::max(0, i - radius), right = std::min(mesh_.nx, i + radius + 1);
  const int top = std::max(0, j - radius), bottom = std::min(mesh_.ny, j + radius + 1);
  const Sums &a = above_left(left, top), &b = above_left(right, top), &c = above_left(left, bottom),
             &d = above_left(right, bottom);
  return (d.value - b.value - c.value + a.value) / (d.count - b.count - c.count + a.count);
}

Eigen::ArrayXd NodeMeans::around_all(int radius) const {
  Eigen::ArrayXd means(mesh_.size());
  for (Eigen::Index row = 0; row < means.size(); ++row) means[row] = around(row, radius);
  return means;
}

}  // namespace dic::global
