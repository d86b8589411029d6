#pragma once

#include <dic/global.hpp>
#include <dic/shared/subset_window.hpp>

namespace dic::global {

/// Alternations of local and global step: each brings back half of what the last one damped too much.
inline constexpr int kAlternations = 4;
/// A period is resolved where this share of its amplitude is left.
inline constexpr double kResolved = 0.9;

/// What is left of the amplitude of a displacement cos(2 pi x / period), on a grid without gaps and with
/// subsets of even texture.
class Transfer {
 public:
  Transfer(const MeasuredSubsets& subsets, int step) : subsets_(subsets), step_(step) {}

  /// After the measurement of each subset for itself.
  double of_subset(double period) const;
  /// After the global step.
  double of_global(double penalty, double period) const;
  /// The penalty with which nine tenths are left of this period; -1 where the subsets lose more.
  double penalty_of(double period) const;
  /// The shortest period that is resolved without making others, up to kOvershoot, too large.
  double least_resolution() const;
  /// Factor of the Laplacian, px^2, in the mean of a displacement over a subset.
  double curvature_of_mean() const {
    return subsets_.order < 2 ? mean_square_distance(subsets_.weights, subsets_.size) / 2 : 0;
  }

 private:
  double forward(double period) const;
  double bending(double period) const;

  MeasuredSubsets subsets_;
  int step_;
};

}  // namespace dic::global
