#include <algorithm>
#include <dic/refine.hpp>

namespace dic {

std::array<double, 2> peak_offset(std::span<const float, 9> n) {
  // Least-squares fit of a + b x + c y + d x^2 + e x y + f y^2 to the nine values.
  const double left = n[0] + n[3] + n[6], right = n[2] + n[5] + n[8], middle_x = n[1] + n[4] + n[7];
  const double top = n[0] + n[1] + n[2], bottom = n[6] + n[7] + n[8], middle_y = n[3] + n[4] + n[5];
  const double b = (right - left) / 6, c = (bottom - top) / 6;
  const double d = (left + right - 2 * middle_x) / 6, f = (top + bottom - 2 * middle_y) / 6;
  const double e = (n[0] + n[8] - n[2] - n[6]) / 4.0;
  const double det = 4 * d * f - e * e;
  if (!(d < 0 && det > 0)) return {0, 0};
  const double x = (e * c - 2 * f * b) / det, y = (e * b - 2 * d * c) / det;
  return {std::clamp(x, -1.0, 1.0), std::clamp(y, -1.0, 1.0)};
}

}  // namespace dic
