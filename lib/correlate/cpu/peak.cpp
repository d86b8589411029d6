#include <algorithm>
#include <cmath>

#include "core/simd_targets.hpp"  // must precede Highway's headers
#include "correlate/backend.hpp"
#include "correlate/cpu/scoring.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "correlate/cpu/peak.cpp"  // NOLINT: how Highway compiles one file per target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dic::correlate {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline float largest(const float* row, int n) {
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  float best = kUndefined;
  int x = 0;
  if (n >= lanes) {
    auto m = hn::LoadU(d, row);
    for (x = lanes; x + lanes <= n; x += lanes) m = hn::Max(m, hn::LoadU(d, row + x));
    best = hn::GetLane(hn::MaxOfLanes(d, m));
  }
  for (; x < n; ++x) best = row[x] > best ? row[x] : best;
  return best;
}

// The best score more than 2 px away from (px, py) in x or y.
inline float second_best(const float* scores, int ny, int nx, int py, int px) {
  const int left = std::max(0, px - 2), right = std::min(nx, px + 3);
  float best = kUndefined;
  for (int y = 0; y < ny; ++y) {
    const float* row = scores + static_cast<std::ptrdiff_t>(y) * nx;
    if (std::abs(y - py) > 2) {
      best = std::max(best, largest(row, nx));
    } else {
      best = std::max(best, largest(row, left));
      best = std::max(best, largest(row + right, nx - right));
    }
  }
  return best;
}

// Finds the parts of a Peak that need the whole surface: the best score, its 0-based position (dx, dy) and
// second_score.
Peak find_peak(const float* scores, const Shifts& shifts) {
  const int ny = shifts.ny(), nx = shifts.nx();
  Peak peak;
  peak.score = kUndefined;
  for (int y = 0; y < ny; ++y) {
    const float best = largest(scores + static_cast<std::ptrdiff_t>(y) * nx, nx);
    if (best > peak.score) peak.score = best, peak.dy = y;
  }
  if (peak.score == kUndefined) return peak;
  const float* row = scores + static_cast<std::ptrdiff_t>(peak.dy) * nx;
  while (row[peak.dx] != peak.score) ++peak.dx;
  peak.found = true;
  peak.second_score = second_best(scores, ny, nx, peak.dy, peak.dx);
  return peak;
}

}  // namespace HWY_NAMESPACE
}  // namespace dic::correlate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dic::correlate {
HWY_EXPORT(find_peak);

Peak extract_peak(const float* scores, const Shifts& shifts, Criterion criterion) {
  Peak peak = HWY_DYNAMIC_DISPATCH(find_peak)(scores, shifts);
  if (!peak.found) return Peak{};
  const int ny = shifts.ny(), nx = shifts.nx();
  const int px = peak.dx, py = peak.dy;
  for (int i = 0; i < 9; ++i) {
    const int y = py + i / 3 - 1, x = px + i % 3 - 1;
    const bool inside = y >= 0 && y < ny && x >= 0 && x < nx;
    const float s = inside ? scores[static_cast<std::ptrdiff_t>(y) * nx + x] : kUndefined;
    peak.neighbourhood[i] = score_to_value(s == kUndefined ? peak.score : s, criterion);
  }
  peak.at_border = px == 0 || py == 0 || px == nx - 1 || py == ny - 1;
  peak.second_score = peak.second_score == kUndefined ? 0.0F : score_to_value(peak.second_score, criterion);
  peak.score = score_to_value(peak.score, criterion);
  peak.dx += shifts.dx_min;
  peak.dy += shifts.dy_min;
  return peak;
}

}  // namespace dic::correlate
#endif
