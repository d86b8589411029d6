#pragma once

#include <array>
#include <dic/track.hpp>
#include <memory>
#include <vector>

#include "analysis/power_spectrum.hpp"
#include "core/parallel.hpp"

namespace dic::analysis {

/// The bias that the spline between the pixels gives to a displacement: a function of its fractions of a
/// pixel that follows from the power spectrum of the pattern (docs/theory.md, Bias of the interpolation).
class InterpolationBias {
 public:
  /// Computes the bias for a pattern with this spectrum, which may go through a low-pass of standard
  /// deviation `sigma` px before it is interpolated. noise: variance before the low-pass, grey levels^2.
  InterpolationBias(const PowerSpectrum& spectrum, double noise, Interpolation interpolation, double sigma);

  /// Error of a displacement (u, v) that is the same everywhere, px.
  std::array<double, 2> at(double u, double v) const;
  /// Mean error over a subset whose displacement changes by the gradient (row-major du/dx, du/dy, dv/dx,
  /// dv/dy) per px. 0 if it changes by more than a pixel, since whole periods average out.
  std::array<double, 2> over_subset(double u, double v, const std::array<double, 4>& gradient, int subset,
                                    SubsetWeights weights = SubsetWeights::uniform) const;
  /// Subtracts the bias from the displacements of all points with values.
  void subtract_from(Field& field, int subset, SubsetWeights weights, core::ThreadPool& pool) const;

 private:
  static constexpr int kSteps = 16;  ///< steps per px, between which the bias, almost a sine, is interpolated

  std::vector<std::array<double, 2>> table_;  ///< [v][u], both from 0 to 1 px
};

/// Approximates the largest bias of u and of v between two pixels, px. Cheaper than the whole table.
std::array<double, 2> largest_bias(const PowerSpectrum& spectrum, double noise, Interpolation interpolation,
                                   double sigma);

/// Mean squared gradient of a pattern that reaches beyond the highest frequency along an axis (sharp edges),
/// grey levels^2 per px^2; 0 if it does not. noise: variance of the noise of the image.
double sharp_edge_gradient(const PowerSpectrum& spectrum, double noise, Interpolation interpolation);

}  // namespace dic::analysis
