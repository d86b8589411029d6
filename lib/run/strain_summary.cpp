#include "run/strain_summary.hpp"

#include <algorithm>
#include <cmath>

namespace dic::run {
namespace {

using Json = nlohmann::ordered_json;

/// Summarizes one strain component. extreme_at: returns the value and position of a node.
template <typename ExtremeAt>
FrameSummary::Strain summarize(const NodeValues<float>& strain, const NodeValues<float>& sigma,
                               const ExtremeAt& extreme_at) {
  double n = 0, sum = 0, squares = 0, sigmas = 0;
  std::size_t least = 0, most = 0;
  for (std::size_t k = 0; k < strain.size(); ++k) {
    if (std::isnan(strain[k])) continue;
    if (n == 0 || strain[k] < strain[least]) least = k;
    if (n == 0 || strain[k] > strain[most]) most = k;
    n += 1, sum += strain[k], squares += double{strain[k]} * strain[k], sigmas += sigma[k];
  }
  const double mean = sum / n;  // NaN without points
  FrameSummary::Strain summary;
  summary.mean = mean;
  summary.sd = std::sqrt(std::max(squares / n - mean * mean, 0.0));
  summary.sigma = sigmas / n;
  if (n > 0) summary.min = extreme_at(strain, least), summary.max = extreme_at(strain, most);
  return summary;
}

Json extreme_json(const FrameSummary::Strain::Extreme& extreme) {
  if (std::isnan(extreme.value)) return nullptr;
  return {{"value", extreme.value}, {"x", extreme.x}, {"y", extreme.y}};
}

}  // namespace

std::array<FrameSummary::Strain, kStrainComponents.size()> summarize_strain(const StrainField& strain,
                                                                            const Grid& grid,
                                                                            const NodePositions* positions,
                                                                            double length_factor) {
  const auto extreme_at = [&](const NodeValues<float>& values, std::size_t k) {
    const double x = positions ? positions->x[k] : grid.x(static_cast<int>(k % grid.nx));
    const double y = positions ? positions->y[k] : grid.y(static_cast<int>(k / grid.nx));
    return FrameSummary::Strain::Extreme{values[k], x * length_factor, y * length_factor};
  };
  std::array<FrameSummary::Strain, kStrainComponents.size()> summaries;
  for (std::size_t k = 0; k < summaries.size(); ++k)
    summaries[k] = summarize(strain_values(strain, kStrainComponents[k]),
                             strain_values(strain, *sigma_of(kStrainComponents[k])), extreme_at);
  return summaries;
}

void describe_strain(Json& frame, std::string_view name, const FrameSummary::Strain& strain) {
  const std::string component(name);
  frame["mean_" + component] = strain.mean;
  frame["sd_" + component] = strain.sd;
  frame["sigma_" + component] = strain.sigma;
  frame["min_" + component] = extreme_json(strain.min);
  frame["max_" + component] = extreme_json(strain.max);
}

}  // namespace dic::run
