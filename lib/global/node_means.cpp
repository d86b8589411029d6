#include "global/node_means.hpp"

#include <algorithm>

namespace dic::global {

NodeMeans::NodeMeans(const Mesh& mesh, const Eigen::ArrayXd& values, Among among)
    : mesh_(mesh), among_(among), sums_(among == Among::all ? 1 : kBands) {
  for (std::size_t band = 0; band < sums_.size(); ++band) add_up(sums_[band], static_cast<int>(band), values);
}

void NodeMeans::add_up(std::vector<Sums>& sums, int band, const Eigen::ArrayXd& values) const {
  sums.resize(std::size_t(mesh_.nx + 1) * (mesh_.ny + 1));
  for (int j = 0; j < mesh_.ny; ++j) {
    Sums row;
    for (int i = 0; i < mesh_.nx; ++i) {
      const Eigen::Index at = mesh_.row_of[std::size_t(j) * mesh_.nx + i];
      if (at >= 0 && (among_ == Among::all || mesh_.band[at] == band))
        row.value += values[at], row.count += 1;
      const Sums& above = sums[corner(i + 1, j)];
      sums[corner(i + 1, j + 1)] = {above.value + row.value, above.count + row.count};
    }
  }
}

double NodeMeans::around(Eigen::Index row, int radius) const {
  const auto i = static_cast<int>(mesh_.nodes[row] % mesh_.nx),
             j = static_cast<int>(mesh_.nodes[row] / mesh_.nx);
  const int left = std::max(0, i - radius), right = std::min(mesh_.nx, i + radius + 1);
  const int top = std::max(0, j - radius), bottom = std::min(mesh_.ny, j + radius + 1);
  const std::vector<Sums>& sums = sums_[among_ == Among::all ? 0 : mesh_.band[row]];
  const Sums &a = sums[corner(left, top)], &b = sums[corner(right, top)], &c = sums[corner(left, bottom)],
             &d = sums[corner(right, bottom)];
  return (d.value - b.value - c.value + a.value) / (d.count - b.count - c.count + a.count);
}

Eigen::ArrayXd NodeMeans::around_all(int radius) const {
  Eigen::ArrayXd means(mesh_.size());
  for (Eigen::Index row = 0; row < means.size(); ++row) means[row] = around(row, radius);
  return means;
}

}  // namespace dic::global
