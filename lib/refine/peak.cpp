#include <dic/refine.hpp>
#include <dic/shared/peak.hpp>

namespace dic {

std::array<double, 2> peak_offset(std::span<const float, 9> neighbourhood) {
  const PeakOffset offset = fitted_peak(neighbourhood.data());
  return {offset.x, offset.y};
}

}  // namespace dic
