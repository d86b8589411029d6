#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <dic/error.hpp>
#include <dic/fields.hpp>
#include <string>
#include <utility>

/// The arrays of a field as Eigen arrays, in place. Meant for programs that use Eigen themselves; no other
/// header of dic includes this one.
namespace dic {

/// One value for each node, [ny x nx]: row j, column i.
template <typename T>
using NodeArray = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A read-only map of the values of a grid's nodes: as_eigen(field.grid(), field.u). The values must outlive
/// the map. Throws UsageError if there is not one value for each node, for example if the strain was not
/// computed.
template <typename T>
Eigen::Map<const NodeArray<T>> as_eigen(const Grid& grid, const NodeValues<T>& values) {
  if (static_cast<std::int64_t>(values.size()) != grid.nodes())
    throw UsageError("There are " + std::to_string(values.size()) + " values for " +
                     std::to_string(grid.nodes()) + " nodes of the grid.");
  return {values.data(), grid.ny, grid.nx};
}

/// A map to read and write the values.
template <typename T>
Eigen::Map<NodeArray<T>> as_eigen(const Grid& grid, NodeValues<T>& values) {
  as_eigen(grid, std::as_const(values));  // checks the size
  return {values.data(), grid.ny, grid.nx};
}

}  // namespace dic
