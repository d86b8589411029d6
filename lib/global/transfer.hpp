#pragma once

#include <dic/global.hpp>
#include <dic/shared/subset_window.hpp>

namespace dic::global {

/// Number of alternations of local and global step; each restores half of what the last one damped too much.
inline constexpr int kAlternations = 4;
/// Share of the amplitude that must remain for a period to be resolved.
inline constexpr double kResolved = 0.9;

/// The share of the amplitude of a displacement cos(2 pi x / period) that remains, on a grid without gaps and
/// with subsets of even texture. Periods are in px.
class Transfer {
 public:
  Transfer(const MeasuredSubsets& subsets, int step) : subsets_(subsets), step_(step) {}

  /// Share that remains after each subset is measured independently.
  double of_subset(double period) const;
  /// Share that remains after the global step.
  double of_global(double penalty, double period) const;
  /// The penalty that leaves kResolved of this period; -1 if the subsets alone lose more.
  double penalty_of(double period) const;
  /// The shortest period that is resolved without amplifying others by more than kOvershoot.
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
