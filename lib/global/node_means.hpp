#pragma once

#include <Eigen/Core>
#include <vector>

#include "global/mesh.hpp"

namespace dic::global {

/// Means of values of the mesh's nodes over squares of the grid.
class NodeMeans {
 public:
  NodeMeans(const Mesh& mesh, const Eigen::ArrayXd& values);

  /// Mean over the nodes that take part and lie at most `radius` nodes from node `row` of the mesh.
  double around(Eigen::Index row, int radius) const;
  Eigen::ArrayXd around_all(int radius) const;

 private:
  /// Sums over the nodes above and to the left of a corner.
  struct Sums {
    double value = 0;
    int count = 0;
  };
  Sums& above_left(int i, int j) { return sums_[std::size_t(j) * (mesh_.nx + 1) + i]; }
  const Sums& above_left(int i, int j) const { return sums_[std::size_t(j) * (mesh_.nx + 1) + i]; }

  const Mesh& mesh_;
  std::vector<Sums> sums_;
};

}  // namespace dic::global
