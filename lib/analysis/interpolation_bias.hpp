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
  /// Of a pattern with this spectrum, which may go through a low-pass of standard deviation `sigma` px before
  /// it is interpolated. noise: variance, grey levels^2, before that.
  InterpolationBias(const PowerSpectrum& spectrum, double noise, Interpolation interpolation, double sigma);

  /// What is measured beyond the truth, px, for a displacement (u, v) that is the same everywhere.
  std::array<double, 2> at(double u, double v) const;
  /// The mean over a subset, whose displacement changes by the gradient (row-major du/dx, du/dy, dv/dx,
  /// dv/dy) per px; 0 where it changes by more than a pixel: what is left of a mean over whole periods.
  std::array<double, 2> over_subset(double u, double v, const std::array<double, 4>& gradient, int subset,
                                    SubsetWeights weights = SubsetWeights::uniform) const;
  /// Subtracts it from the displacements of all points with values.
  void subtract_from(Field& field, int subset, SubsetWeights weights, ThreadPool& pool) const;

 private:
  static constexpr int kSteps = 16;  ///< per px; between them the bias, almost a sine, is interpolated

  std::vector<std::array<double, 2>> table_;  ///< [v][u], both from 0 to 1 px
};

/// Of u and v, px: about the largest that it is between two pixels. Cheaper than all of it.
std::array<double, 2> largest_bias(const PowerSpectrum& spectrum, double noise, Interpolation interpolation,
                                   double sigma);

/// Mean squared gradient of a pattern that reaches beyond the highest frequency along an axis (sharp edges),
/// grey levels^2 per px^2; 0: it does not. noise: variance of that of the image.
double sharp_edge_gradient(const PowerSpectrum& spectrum, double noise, Interpolation interpolation);

}  // namespace dic::analysis
