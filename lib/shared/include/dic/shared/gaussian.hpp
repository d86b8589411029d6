#pragma once

#include <cmath>
#include <vector>

/// The optional Gaussian low-pass of the images before measurement.
namespace dic {

/// Filter weights at distances 0, 1, ... px on one side, up to four standard deviations; the taps of both
/// sides add up to 1. sigma: px; 0 = no filter.
inline std::vector<double> gaussian_taps(double sigma) {
  std::vector<double> taps{1};
  double sum = 1;
  for (int k = 1; k <= std::ceil(4 * sigma); ++k) {
    taps.push_back(std::exp(-0.5 * k * k / (sigma * sigma)));
    sum += 2 * taps.back();
  }
  for (double& tap : taps) tap /= sum;
  return taps;
}

/// Frequency response of symmetric taps, omega in rad per px.
inline double response_of(const std::vector<double>& taps, double omega) {
  double response = taps[0];
  for (std::size_t k = 1; k < taps.size(); ++k)
    response += 2 * taps[k] * std::cos(omega * static_cast<double>(k));
  return response;
}

}  // namespace dic
