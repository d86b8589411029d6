#pragma once

#include <Eigen/SparseCore>
#include <cstdint>
#include <dic/fields.hpp>
#include <vector>

namespace dic::global {

using SparseMatrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;

/// The nodes of a field that take part in the global step, and their elements.
///
/// Elements are the quads of a grid and their neighbours in a row: three `ok` nodes in a row or a column are
/// bent by their second difference, four around a cell twisted by their mixed difference. Where a node is not
/// `ok`, its elements are missing. Nodes without elements do not take part.
struct Mesh {
  explicit Mesh(const Field& field);

  Eigen::Index size() const { return static_cast<Eigen::Index>(nodes.size()); }
  /// The mean over a subset: 1 + factor * Laplacian, factor in px^2; without the direction in which a
  /// neighbour is missing. [size x size]
  SparseMatrix subset_mean(double factor) const;
  /// Nodes from each node of the mesh to the nearest that does not take part, or to the end of the grid, less
  /// one, along rows, columns and diagonals.
  std::vector<int> margins() const;

  int nx, ny, step;
  std::vector<std::int64_t> nodes;   ///< that take part, by their number in the grid
  std::vector<Eigen::Index> row_of;  ///< of every node of the grid; -1: it does not take part
  SparseMatrix bending;              ///< sum over elements of the square of their difference [size x size]
};

}  // namespace dic::global
