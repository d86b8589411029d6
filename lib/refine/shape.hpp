#pragma once

#include <array>
#include <cmath>
#include <dic/refine.hpp>

/// Shape functions as small polynomials: what the inverse-compositional update needs.
namespace dic {

/// c + x X + y Y + xx X^2 + xy X Y + yy Y^2.
struct Quadratic {
  double c = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
};

inline Quadratic operator+(const Quadratic& a, const Quadratic& b) {
  return {a.c + b.c, a.x + b.x, a.y + b.y, a.xx + b.xx, a.xy + b.xy, a.yy + b.yy};
}
inline Quadratic operator*(double s, const Quadratic& a) {
  return {s * a.c, s * a.x, s * a.y, s * a.xx, s * a.xy, s * a.yy};
}
/// Product without the terms of degree 3 and 4.
inline Quadratic operator*(const Quadratic& a, const Quadratic& b) {
  return {a.c * b.c,
          a.c * b.x + a.x * b.c,
          a.c * b.y + a.y * b.c,
          a.c * b.xx + a.x * b.x + a.xx * b.c,
          a.c * b.xy + a.x * b.y + a.y * b.x + a.xy * b.c,
          a.c * b.yy + a.y * b.y + a.yy * b.c};
}

/// A warp of the subset: (dx, dy) -> (x(dx, dy), y(dx, dy)), both relative to the reference centre.
struct Warp {
  Quadratic x{0, 1, 0}, y{0, 0, 1};
};

inline Warp warp_of(const ShapeParameters& p) {
  return {{p.u, 1 + p.ux, p.uy, 0.5 * p.uxx, p.uxy, 0.5 * p.uyy},
          {p.v, p.vx, 1 + p.vy, 0.5 * p.vxx, p.vxy, 0.5 * p.vyy}};
}

inline ShapeParameters parameters_of(const Warp& w) {
  return {w.x.c, w.x.x - 1, w.x.y,     2 * w.x.xx, w.x.xy, 2 * w.x.yy,
          w.y.c, w.y.x,     w.y.y - 1, 2 * w.y.xx, w.y.xy, 2 * w.y.yy};
}

/// outer(inner(.)), truncated to degree 2 (exact for affine warps).
inline Warp compose(const Warp& outer, const Warp& inner) {
  const auto apply = [&](const Quadratic& q) {
    const Quadratic& x = inner.x;
    const Quadratic& y = inner.y;
    return Quadratic{q.c} + q.x * x + q.y * y + q.xx * (x * x) + q.xy * (x * y) + q.yy * (y * y);
  };
  return {apply(outer.x), apply(outer.y)};
}

/// Inverse, truncated to degree 2 (exact for affine warps). The linear part must be regular.
inline Warp inverse(const Warp& w) {
  const double det = w.x.x * w.y.y - w.x.y * w.y.x;
  const auto solve_linear = [&](const Quadratic& bx, const Quadratic& by) {
    return Warp{(1 / det) * (w.y.y * bx + -w.x.y * by), (1 / det) * (w.x.x * by + -w.y.x * bx)};
  };
  // w(X) = c + A X + Q(X)  =>  X = A^-1 (Y - c - Q(X)), with X in Q taken to first order.
  const Warp linear = solve_linear({-w.x.c, 1, 0}, {-w.y.c, 0, 1});
  const auto quadratic_part = [&](const Quadratic& q) {
    return q.xx * (linear.x * linear.x) + q.xy * (linear.x * linear.y) + q.yy * (linear.y * linear.y);
  };
  const Quadratic rest_x = Quadratic{-w.x.c, 1, 0} + -1.0 * quadratic_part(w.x);
  const Quadratic rest_y = Quadratic{-w.y.c, 0, 1} + -1.0 * quadratic_part(w.y);
  return solve_linear(rest_x, rest_y);
}

/// Largest displacement that the parameters mean anywhere within `radius` px of the centre (an upper bound
/// that is attained at a corner for order 1), px.
inline double largest_displacement(const ShapeParameters& p, double radius) {
  const auto bound = [radius](double c, double x, double y, double xx, double xy, double yy) {
    return std::abs(c) + radius * (std::abs(x) + std::abs(y)) +
           radius * radius * (0.5 * std::abs(xx) + std::abs(xy) + 0.5 * std::abs(yy));
  };
  return std::hypot(bound(p.u, p.ux, p.uy, p.uxx, p.uxy, p.uyy), bound(p.v, p.vx, p.vy, p.vxx, p.vxy, p.vyy));
}

}  // namespace dic
