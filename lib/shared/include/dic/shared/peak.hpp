#pragma once

#include <dic/shared/host_device.hpp>

namespace dic {

struct PeakOffset {
  double x = 0, y = 0;  ///< px, -1 to 1
};

/// Maximum of the quadratic surface a + b x + c y + d x^2 + e x y + f y^2 through a 3x3 neighbourhood
/// (row-major), fitted by least squares; (0, 0) if it has no maximum.
DIC_HOST_DEVICE inline PeakOffset fitted_peak(const float* n) {
  const double left = n[0] + n[3] + n[6], right = n[2] + n[5] + n[8], middle_x = n[1] + n[4] + n[7];
  const double top = n[0] + n[1] + n[2], bottom = n[6] + n[7] + n[8], middle_y = n[3] + n[4] + n[5];
  const double b = (right - left) / 6, c = (bottom - top) / 6;
  const double d = (left + right - 2 * middle_x) / 6, f = (top + bottom - 2 * middle_y) / 6;
  const double e = (n[0] + n[8] - n[2] - n[6]) / 4.0;
  const double det = 4 * d * f - e * e;
  if (!(d < 0 && det > 0)) return {};
  const auto clamped = [](double offset) { return offset < -1 ? -1 : offset > 1 ? 1 : offset; };
  return {clamped((e * c - 2 * f * b) / det), clamped((e * b - 2 * d * c) / det)};
}

}  // namespace dic
