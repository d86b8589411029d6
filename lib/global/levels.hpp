#pragma once

#include <Eigen/Core>
#include <vector>

#include "global/mesh.hpp"

namespace dic::global {

/// What the global step makes of a measurement, and of errors of the same kind, at one resolution.
struct Level {
  double resolution;       ///< px
  Eigen::MatrixXd field;   ///< columns u and v, px
  Eigen::MatrixXd errors;  ///< one draw per column, an even number; of the mean variance of u and v
};

/// Between which two levels that follow each other the field is taken, by node of the mesh.
struct Blend {
  Eigen::ArrayXd level;  ///< 0 .. levels - 1

  /// The columns of field or errors.
  Eigen::MatrixXd of(const std::vector<Level>& levels, Eigen::MatrixXd Level::*values) const;
};

/// Does noise explain by how much two fields of one measurement differ?
struct Comparison {
  Eigen::ArrayXd ratio;    ///< of the mean squared difference, u and v, to that of errors, by node
  double threshold;        ///< of the ratio: what errors hardly ever reach
  Eigen::ArrayXXd excess;  ///< of the squared difference over that of errors, columns u and v, px^2

  /// Means are over a quarter of `period` to all sides. variance: of u and v, of a mean of 1.
  Comparison(const Mesh& mesh, const Level& fine, const Level& coarse, double period,
             const Eigen::Array2d& variance);
  Eigen::Array<bool, Eigen::Dynamic, 1> refuted() const { return ratio > threshold; }
};

/// The coarsest level at every node that noise alone explains: where a level differs from a finer one by more
/// than errors do, it damps what was measured, and a finer one is taken (Lepski's method). levels: the finest
/// first.
Blend choose_levels(const Mesh& mesh, const std::vector<Level>& levels, const Eigen::Array2d& variance);

}  // namespace dic::global
