#include "camera/lens.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dic::camera {

stereo::LensTerms terms_of(const Lens& l) {
  return {l.fx, l.fy, l.cx, l.cy, l.k1, l.k2, l.p1, l.p2, l.k3, l.k4, l.k5, l.k6, l.skew};
}

Mapped distort(const Lens& lens, Point ideal) {
  const stereo::SeenPixel seen = stereo::distorted(terms_of(lens), ideal.x, ideal.y);
  return {{seen.x, seen.y}, {seen.slope(0, 0), seen.slope(0, 1), seen.slope(1, 0), seen.slope(1, 1)}};
}

std::optional<Point> undistort(const Lens& lens, Point seen) {
  constexpr int kMostSteps = 30;
  constexpr double kLastStep = 1e-7;  // px; Newton's method squares the error, so only rounding remains
  Point ideal = seen;
  for (int i = 0; i < kMostSteps; ++i) {
    const Mapped at = distort(lens, ideal);
    const double det = determinant(at.jacobian);
    if (!(at.jacobian.xx > 0 && det > 0)) return std::nullopt;
    const double ex = seen.x - at.point.x, ey = seen.y - at.point.y;
    const double dx = (at.jacobian.yy * ex - at.jacobian.xy * ey) / det;
    const double dy = (at.jacobian.xx * ey - at.jacobian.yx * ex) / det;
    ideal.x += dx, ideal.y += dy;
    if (std::max(std::abs(dx), std::abs(dy)) < kLastStep) return ideal;
  }
  return std::nullopt;
}

Mapped project(const std::array<double, 9>& h, Point p) {
  const double w = h[6] * p.x + h[7] * p.y + h[8];
  if (!(w > 0)) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    return {{none, none}, {none, none, none, none}};
  }
  const double x = (h[0] * p.x + h[1] * p.y + h[2]) / w, y = (h[3] * p.x + h[4] * p.y + h[5]) / w;
  return {{x, y},
          {(h[0] - x * h[6]) / w, (h[1] - x * h[7]) / w, (h[3] - y * h[6]) / w, (h[4] - y * h[7]) / w}};
}

std::array<double, 9> product(const std::array<double, 9>& a, const std::array<double, 9>& b) {
  std::array<double, 9> c{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 3; ++k) c[3 * i + j] += a[3 * i + k] * b[3 * k + j];
  return c;
}

double determinant(const std::array<double, 9>& m) {
  return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
         m[2] * (m[3] * m[7] - m[4] * m[6]);
}

std::array<double, 9> inverse(const std::array<double, 9>& m) {
  std::array<double, 9> out = {
      m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
      m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
      m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]};
  const double det = determinant(m);
  for (double& value : out) value /= det;
  return out;
}

Jacobian product(const Jacobian& a, const Jacobian& b) {
  return {a.xx * b.xx + a.xy * b.yx, a.xx * b.xy + a.xy * b.yy, a.yx * b.xx + a.yy * b.yx,
          a.yx * b.xy + a.yy * b.yy};
}

Jacobian inverse(const Jacobian& j) {
  const double det = determinant(j);
  return {j.yy / det, -j.xy / det, -j.yx / det, j.xx / det};
}

}  // namespace dic::camera
