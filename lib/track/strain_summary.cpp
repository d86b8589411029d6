#include "track/strain_summary.hpp"

#include <algorithm>
#include <cmath>

namespace dic {

FrameSummary::Strain summarize_strain(const Field& field, NodeValues<float> StrainField::*component,
                                      NodeValues<float> StrainField::*sigma, double length_factor) {
  const NodeValues<float>&strain = field.strain.*component, &sigmas = field.strain.*sigma;
  double n = 0, sum = 0, squares = 0, sum_of_sigmas = 0;
  std::size_t least = 0, most = 0;
  for (std::size_t k = 0; k < strain.size(); ++k) {
    if (std::isnan(strain[k])) continue;
    if (n == 0 || strain[k] < strain[least]) least = k;
    if (n == 0 || strain[k] > strain[most]) most = k;
    n += 1, sum += strain[k], squares += double{strain[k]} * strain[k], sum_of_sigmas += sigmas[k];
  }
  const double mean = sum / n;  // NaN where there is none
  FrameSummary::Strain summary{mean, std::sqrt(std::max(squares / n - mean * mean, 0.0)), sum_of_sigmas / n};
  if (n == 0) return summary;
  const auto extreme = [&](std::size_t k) {
    const int i = static_cast<int>(k % field.grid().nx), j = static_cast<int>(k / field.grid().nx);
    return FrameSummary::Strain::Extreme{strain[k], field.x(i, j) * length_factor,
                                         field.y(i, j) * length_factor};
  };
  summary.min = extreme(least), summary.max = extreme(most);
  return summary;
}

}  // namespace dic
