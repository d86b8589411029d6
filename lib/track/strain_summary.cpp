#include "track/strain_summary.hpp"

#include <algorithm>
#include <cmath>

namespace dic {

FrameSummary::Strain summarize_strain(const NodeValues<float>& strain, const NodeValues<float>& sigma) {
  double n = 0, sum = 0, squares = 0, sigmas = 0;
  for (std::size_t i = 0; i < strain.size(); ++i) {
    if (std::isnan(strain[i])) continue;
    n += 1, sum += strain[i], squares += double{strain[i]} * strain[i], sigmas += sigma[i];
  }
  const double mean = sum / n;  // NaN where there is none
  return {mean, std::sqrt(std::max(squares / n - mean * mean, 0.0)), sigmas / n};
}

}  // namespace dic
