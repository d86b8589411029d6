#include "validate/resolution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dic::validation {
namespace {

constexpr double kRatio = 0.96;       // ratio of neighbouring periods of the curve
constexpr int kBorder = 40;           // px: points nearer to the left or right border are left out
constexpr std::int64_t kFewest = 30;  // smallest number of points for a period

/// The x at which the period of star or chirp is p, px.
double place_of(const Motion& m, double p) {
  return (m.period_max - p) * (m.width - 1) / (m.period_max - m.period_min);
}

}  // namespace

std::vector<Transfer> transfer_of(const Motion& motion, double amount, const Field& field, int margin) {
  const bool star = motion.kind == MotionKind::star;
  const Grid& grid = field.grid();
  const double pitch = (motion.width - 1) / (motion.period_max - motion.period_min);  // px per px of period
  std::vector<Transfer> curve;
  for (double period = motion.period_max; period >= motion.period_min; period *= kRatio) {
    const double middle = place_of(motion, period);
    const double half = std::max(0.05 * period * pitch, star ? 0.0 : period / 2);
    if (middle - half < kBorder || middle + half > motion.width - 1 - kBorder) continue;
    double product = 0, square = 0;
    std::int64_t count = 0;
    for (int j = 0; j < grid.ny; ++j) {
      if (std::min(j, grid.ny - 1 - j) * grid.step < margin) continue;
      for (int i = 0; i < grid.nx; ++i) {
        const std::int64_t k = static_cast<std::int64_t>(j) * grid.nx + i;
        if (field.status[k] != Status::ok || std::abs(grid.x(i) - middle) > half) continue;
        const auto [u, v] = motion.at(grid.x(i), grid.y(j), amount);
        const double truth = star ? v : u, measured = star ? field.v[k] : field.u[k];
        product += truth * measured;
        square += truth * truth;
        ++count;
      }
    }
    if (count >= kFewest) curve.push_back({period, product / square});
  }
  return curve;
}

double period_of_loss(const std::vector<Transfer>& curve, double share) {
  const auto below = std::ranges::find_if(curve, [&](const Transfer& t) { return t.share < share; });
  if (below == curve.begin()) return std::numeric_limits<double>::infinity();
  const Transfer& above = *std::prev(below);
  if (below == curve.end()) return above.period;
  const double part = (above.share - share) / (above.share - below->share);
  return above.period + part * (below->period - above.period);
}

}  // namespace dic::validation
