#pragma once

#include <Eigen/Core>
#include <vector>

#include "global/mesh.hpp"

namespace dic::global {

/// The nodes that a mean is taken over: all, or those about as far from an edge, see Mesh::band.
enum class Among { all, band };

/// Means of values of the mesh's nodes over squares of the grid.
class NodeMeans {
 public:
  NodeMeans(const Mesh& mesh, const Eigen::ArrayXd& values, Among among);

  /// Mean over the nodes that count and lie at most `radius` nodes from node `row` of the mesh.
  double around(Eigen::Index row, int radius) const;
  Eigen::ArrayXd around_all(int radius) const;

 private:
  /// Sums over the nodes above and to the left of a corner.
  struct Sums {
    double value = 0;
    int count = 0;
  };
  void add_up(std::vector<Sums>& sums, int band, const Eigen::ArrayXd& values) const;
  std::size_t corner(int i, int j) const { return std::size_t(j) * (mesh_.nx + 1) + i; }

  const Mesh& mesh_;
  Among among_;
  std::vector<std::vector<Sums>> sums_;  ///< by band; one for all nodes
};

}  // namespace dic::global
