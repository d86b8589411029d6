#pragma once

#include <Eigen/Core>

#include "core/parallel.hpp"
#include "dic/global.hpp"
#include "global/mesh.hpp"

namespace dic::global {

/// Random errors of overlapping subsets of even texture, with unit variance and correlated by the pixels that
/// subsets share. [nodes of the mesh x count]; the columns are independent of each other, and the same in
/// every run.
Eigen::MatrixXd subset_errors(const Mesh& mesh, const MeasuredSubsets& subsets, int count,
                              core::ThreadPool& pool);

}  // namespace dic::global
