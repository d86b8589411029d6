#pragma once

#include <Eigen/Core>

#include "core/parallel.hpp"
#include "dic/global.hpp"
#include "global/mesh.hpp"

namespace dic::global {

/// Errors as noise makes them in subsets of even texture that overlap: of unit variance, correlated by the
/// pixels that subsets share. [nodes of the mesh x count], columns independent of each other, always the
/// same.
Eigen::MatrixXd subset_errors(const Mesh& mesh, const MeasuredSubsets& subsets, int count, ThreadPool& pool);

}  // namespace dic::global
