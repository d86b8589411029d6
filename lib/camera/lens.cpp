#include "camera/lens.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dic::camera {

Mapped distort(const Lens& l, Point ideal) {
  const double a = (ideal.x - l.cx) / l.fx, b = (ideal.y - l.cy) / l.fy, r2 = a * a + b * b;
  const double above = 1 + r2 * (l.k1 + r2 * (l.k2 + r2 * l.k3));
  const double below = 1 + r2 * (l.k4 + r2 * (l.k5 + r2 * l.k6));
  const double q = above / below;
  const double slope_above = l.k1 + r2 * (2 * l.k2 + r2 * 3 * l.k3);
  const double slope_below = l.k4 + r2 * (2 * l.k5 + r2 * 3 * l.k6);
  const double dq = 2 * (slope_above - q * slope_below) / below;  // dq/da = a dq, dq/db = b dq
  const double seen_a = a * q + 2 * l.p1 * a * b + l.p2 * (r2 + 2 * a * a);
  const double seen_b = b * q + l.p1 * (r2 + 2 * b * b) + 2 * l.p2 * a * b;
  const double aa = q + a * a * dq + 2 * l.p1 * b + 6 * l.p2 * a;
  const double ab = a * b * dq + 2 * l.p1 * a + 2 * l.p2 * b;
  const double bb = q + b * b * dq + 6 * l.p1 * b + 2 * l.p2 * a;
  return {{l.fx * seen_a + l.skew * seen_b + l.cx, l.fy * seen_b + l.cy},
          {aa + ab * l.skew / l.fx, (ab * l.fx + bb * l.skew) / l.fy, ab * l.fy / l.fx, bb}};
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
