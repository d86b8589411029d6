#pragma once

#include <cmath>
#include <dic/shared/host_device.hpp>
#include <dic/shared/subset_weights.hpp>

namespace dic {

/// Standard deviation of the Gaussian window as a fraction of the subset's side; the window ends at two
/// standard deviations. For orders 0 and 1, its noise is that of a uniform subset of four fifths of the side,
/// its spatial resolution that of three quarters.
inline constexpr double kWindowSd = 0.25;

/// Weight of a column (or row) at a distance, px, from the centre of a subset of this side, px. The weight of
/// a pixel is the product of those of its column and row.
template <typename T>
DIC_HOST_DEVICE T window_weight(SubsetWeights weights, T distance, int subset) {
  using std::exp;
  if (weights == SubsetWeights::uniform) return 1;
  const T deviations = distance / (static_cast<T>(kWindowSd) * static_cast<T>(subset));
  return exp(T(-0.5) * deviations * deviations);
}

/// Weighted mean of the squared distance of a subset's columns from its centre, px^2.
inline double mean_square_distance(SubsetWeights weights, int subset) {
  double total = 0, square = 0;
  for (int i = -subset / 2; i <= subset / 2; ++i) {
    const double weight = window_weight<double>(weights, i, subset);
    total += weight, square += weight * i * i;
  }
  return square / total;
}

}  // namespace dic
