#pragma once

#include <cmath>
#include <dic/shared/host_device.hpp>

/// Finds nodes beside a crack or an edge with measured points on both sides, for CPU and GPU: no strain
/// window may reach across it.
namespace dic::strain {

/// Tolerance for the change of a displacement between neighbouring nodes that is no tear: the slope may
/// change by tear_slope px per px from step to step, and noise adds tear_sigmas sigma (four nodes take part).
constexpr double tear_slope = 0.05, tear_sigmas = 12;

/// True if the material is torn between `here` and `there`. before, here, there, beyond: a displacement at
/// four nodes in a row, NaN if unknown. The step between the inner two is a tear if it differs from both
/// steps beside it, or from the only known one.
DIC_HOST_DEVICE inline bool is_torn(double before, double here, double there, double beyond,
                                    double tolerance) {
  const double step = there - here, left = here - before, right = beyond - there;
  const bool other_left = std::fabs(step - left) > tolerance,
             other_right = std::fabs(step - right) > tolerance;
  return (other_left && (other_right || std::isnan(right))) || (other_right && std::isnan(left));
}

/// Displacements and their sigma at a node, px; NaN if not measured.
struct TearNode {
  double u, v;
  float sigma_u, sigma_v;
};

/// True if the steps to both sides of a node are alike regardless of sigma. Then the material is torn on
/// neither side.
DIC_HOST_DEVICE inline bool is_smooth(const TearNode& before, const TearNode& here, const TearNode& there,
                                      int step) {
  const double tolerance = tear_slope * step;
  return std::fabs(before.u + there.u - 2 * here.u) < 0.99 * tolerance &&
         std::fabs(before.v + there.v - 2 * here.v) < 0.99 * tolerance;
}

/// True if the material is torn on one of the four sides of a node. at(di, dj): the node at that offset.
/// Without known sigma, nothing counts as torn.
template <typename At>
DIC_HOST_DEVICE bool is_beside_tear(const At& at, int step) {
  const TearNode here = at(0, 0);
  if (is_smooth(at(-1, 0), here, at(1, 0), step) && is_smooth(at(0, -1), here, at(0, 1), step)) return false;
  for (int side = 0; side < 4; ++side) {
    const int di = side == 0 ? 1 : side == 1 ? -1 : 0, dj = side == 2 ? 1 : side == 3 ? -1 : 0;
    const TearNode before = at(-di, -dj), there = at(di, dj), beyond = at(2 * di, 2 * dj);
    const auto tolerance = [step](float a, float b) {
      return tear_slope * step + tear_sigmas * (a > b ? a : b);
    };
    if (is_torn(before.u, here.u, there.u, beyond.u, tolerance(here.sigma_u, there.sigma_u)) ||
        is_torn(before.v, here.v, there.v, beyond.v, tolerance(here.sigma_v, there.sigma_v)))
      return true;
  }
  return false;
}

}  // namespace dic::strain
