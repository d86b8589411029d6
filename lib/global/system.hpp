#pragma once

#include <Eigen/SparseCholesky>
#include <memory>

#include "core/parallel.hpp"
#include "global/mesh.hpp"

namespace dic::global {

/// The sparse system of the global step, and the alternation with the local one.
///
/// Local step: with the multiplier y of its node, a subset has its optimum at p + y, because its measurement
/// p is the optimum of a quadratic of weight w. Global step: finds the field x with the least
///     sum over subsets w (mean over the subset of x - p - y)^2 + penalty * sum over elements (bending of
///     x)^2,
/// a symmetric positive definite system, the same for u, v and every noise. Then y grows by p - mean of x.
class System {
 public:
  /// weights: one per node of the mesh, > 0. mean: see Mesh::subset_mean.
  System(const Mesh& mesh, const SparseMatrix& mean, const Eigen::VectorXd& weights);

  /// Factorizes the system for this penalty, > 0.
  void set_penalty(double penalty);
  /// The field after kAlternations alternations, for each column of measurements.
  Eigen::MatrixXd alternate(const Eigen::MatrixXd& measured, core::ThreadPool& pool) const;

 private:
  Eigen::VectorXd alternate(const Eigen::VectorXd& measured) const;

  const Mesh& mesh_;
  SparseMatrix mean_, weighted_, data_;
  Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> solver_;
};

}  // namespace dic::global
