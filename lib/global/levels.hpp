#pragma once

#include <Eigen/Core>
#include <vector>

#include "global/mesh.hpp"

namespace dic::global {

/// Results of the global step at one resolution: from a measurement, and from errors of the same kind.
struct Level {
  double resolution;       ///< px
  Eigen::MatrixXd field;   ///< columns u and v, px
  Eigen::MatrixXd errors;  ///< an even number of draws, one per column, with the mean variance of u and v
};

/// The level of each node of the mesh; fractions interpolate between two successive levels.
struct Blend {
  Eigen::ArrayXd level;  ///< 0 .. levels - 1

  /// Interpolates the columns of `field` or `errors`.
  Eigen::MatrixXd of(const std::vector<Level>& levels, Eigen::MatrixXd Level::*values) const;
};

/// Tests whether noise explains the difference of two fields of one measurement.
struct Comparison {
  Eigen::ArrayXd ratio;      ///< mean squared difference of u and v over that of errors, by node
  Eigen::ArrayXd threshold;  ///< ratio that errors hardly ever reach, by node
  Eigen::ArrayXXd excess;    ///< mean squared difference minus that of errors, columns u and v, px^2

  /// Takes means over a quarter of `period` to all sides, within the band of each node. variance: of u and v,
  /// divided by their mean.
  Comparison(const Mesh& mesh, const Level& fine, const Level& coarse, double period,
             const Eigen::Array2d& variance);
  Eigen::Array<bool, Eigen::Dynamic, 1> refuted() const { return ratio > threshold; }
};

/// Chooses the coarsest level at every node that noise alone explains: a level that differs from a finer one
/// by more than errors do damps the measurement, and a finer one is chosen (Lepski's method). levels: the
/// finest first. variance: of u and v, divided by their mean.
Blend choose_levels(const Mesh& mesh, const std::vector<Level>& levels, const Eigen::Array2d& variance);

}  // namespace dic::global
