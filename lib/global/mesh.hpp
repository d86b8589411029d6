#pragma once

#include <Eigen/SparseCore>
#include <cstdint>
#include <dic/fields.hpp>
#include <vector>

namespace dic::global {

using SparseMatrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;

inline constexpr int kBands = 4;  ///< see Mesh::band

/// The nodes of a field that take part in the global step, and their elements.
///
/// An element is three `ok` nodes in a row or a column, which are bent by their second difference, or four
/// `ok` nodes around a cell, which are twisted by their mixed difference. Other nodes do not take part.
struct Mesh {
  explicit Mesh(const Field& field);

  Eigen::Index size() const { return static_cast<Eigen::Index>(nodes.size()); }
  /// The mean over a subset: 1 + factor * Laplacian, factor in px^2. Directions in which a neighbour is
  /// missing are omitted. [size x size]
  SparseMatrix subset_mean(double factor) const;

  int nx, ny, step;
  std::vector<std::int64_t> nodes;   ///< grid numbers of the nodes that take part
  std::vector<Eigen::Index> row_of;  ///< index in `nodes` of each node of the grid; -1: does not take part
  SparseMatrix bending;              ///< sum over elements of the square of their difference [size x size]
  /// How far each node of the mesh is from the nearest node that does not take part, or the end of the grid:
  /// 0, 1-2, 3-6, or more nodes between them. Errors grow towards an edge.
  std::vector<int> band;

 private:
  /// The number of nodes between each node and an edge, along rows, columns and diagonals.
  std::vector<int> margins() const;
};

}  // namespace dic::global
