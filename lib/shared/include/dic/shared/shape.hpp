#pragma once

#include <cmath>
#include <dic/shared/host_device.hpp>
#include <dic/shared/shape_parameters.hpp>

/// Shape functions as small polynomials, for the inverse-compositional update on host and device.
namespace dic {

/// The polynomial c + x X + y Y (+ xx X^2 + xy X Y + yy Y^2 for degree 2; for degree 1 these are zero and
/// cost nothing).
template <typename T, int kDegree>
struct Polynomial {
  T c = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;

  DIC_HOST_DEVICE T operator()(T i, T j) const {
    if constexpr (kDegree == 1) return c + x * i + y * j;
    return c + i * (x + xx * i + xy * j) + j * (y + yy * j);
  }
};

template <typename T, int kDegree>
DIC_HOST_DEVICE Polynomial<T, kDegree> operator+(const Polynomial<T, kDegree>& a,
                                                 const Polynomial<T, kDegree>& b) {
  if constexpr (kDegree == 1) return {a.c + b.c, a.x + b.x, a.y + b.y};
  return {a.c + b.c, a.x + b.x, a.y + b.y, a.xx + b.xx, a.xy + b.xy, a.yy + b.yy};
}
template <typename T, int kDegree>
DIC_HOST_DEVICE Polynomial<T, kDegree> operator*(T s, const Polynomial<T, kDegree>& a) {
  if constexpr (kDegree == 1) return {s * a.c, s * a.x, s * a.y};
  return {s * a.c, s * a.x, s * a.y, s * a.xx, s * a.xy, s * a.yy};
}
/// Product without the terms of degree 3 and 4.
template <typename T>
DIC_HOST_DEVICE Polynomial<T, 2> operator*(const Polynomial<T, 2>& a, const Polynomial<T, 2>& b) {
  return {a.c * b.c,
          a.c * b.x + a.x * b.c,
          a.c * b.y + a.y * b.c,
          a.c * b.xx + a.x * b.x + a.xx * b.c,
          a.c * b.xy + a.x * b.y + a.y * b.x + a.xy * b.c,
          a.c * b.yy + a.y * b.y + a.yy * b.c};
}

/// A warp of the subset: (dx, dy) -> (x(dx, dy), y(dx, dy)), both relative to the reference centre.
template <typename T, int kDegree>
struct BasicWarp {
  Polynomial<T, kDegree> x{0, 1, 0}, y{0, 0, 1};
};

using Quadratic = Polynomial<double, 2>;
using Warp = BasicWarp<double, 2>;

/// Displacements of a subset as polynomials of the position in it.
inline Warp displacement_of(const ShapeParameters& p) {
  return {{p.u, p.ux, p.uy, 0.5 * p.uxx, p.uxy, 0.5 * p.uyy},
          {p.v, p.vx, p.vy, 0.5 * p.vxx, p.vxy, 0.5 * p.vyy}};
}

template <typename T, int kDegree>
DIC_HOST_DEVICE BasicWarp<T, kDegree> warp_of(BasicWarp<T, kDegree> displacement) {
  displacement.x.x += 1;
  displacement.y.y += 1;
  return displacement;
}
inline Warp warp_of(const ShapeParameters& p) { return warp_of(displacement_of(p)); }

inline ShapeParameters parameters_of(const Warp& w) {
  return {w.x.c, w.x.x - 1, w.x.y,     2 * w.x.xx, w.x.xy, 2 * w.x.yy,
          w.y.c, w.y.x,     w.y.y - 1, 2 * w.y.xx, w.y.xy, 2 * w.y.yy};
}

/// The warp outer(inner(.)), truncated to the degree (exact for affine warps).
template <typename T, int kDegree>
DIC_HOST_DEVICE BasicWarp<T, kDegree> compose(const BasicWarp<T, kDegree>& outer,
                                              const BasicWarp<T, kDegree>& inner) {
  const auto apply = [&](const Polynomial<T, kDegree>& q) {
    const Polynomial<T, kDegree>&x = inner.x, &y = inner.y;
    const auto linear = Polynomial<T, kDegree>{q.c} + q.x * x + q.y * y;
    if constexpr (kDegree == 1)
      return linear;
    else
      return linear + q.xx * (x * x) + q.xy * (x * y) + q.yy * (y * y);
  };
  return {apply(outer.x), apply(outer.y)};
}

/// Determinant of the linear part: negative where the warp mirrors the subset, near 0 where it flattens it.
template <typename T, int kDegree>
DIC_HOST_DEVICE T jacobian(const BasicWarp<T, kDegree>& w) {
  return w.x.x * w.y.y - w.x.y * w.y.x;
}

/// Inverse, truncated to the degree (exact for affine warps). The linear part must be regular.
template <typename T, int kDegree>
DIC_HOST_DEVICE BasicWarp<T, kDegree> inverse(const BasicWarp<T, kDegree>& w) {
  using P = Polynomial<T, kDegree>;
  const T scale = 1 / jacobian(w);
  const auto solve_linear = [&](const P& bx, const P& by) {
    return BasicWarp<T, kDegree>{scale * (w.y.y * bx + -w.x.y * by), scale * (w.x.x * by + -w.y.x * bx)};
  };
  // w(X) = c + A X + Q(X)  =>  X = A^-1 (Y - c - Q(X)), with X in Q taken to first order.
  const auto linear = solve_linear(P{-w.x.c, 1, 0}, P{-w.y.c, 0, 1});
  if constexpr (kDegree == 1)
    return linear;
  else {
    const auto quadratic_part = [&](const P& q) {
      return q.xx * (linear.x * linear.x) + q.xy * (linear.x * linear.y) + q.yy * (linear.y * linear.y);
    };
    const P rest_x = P{-w.x.c, 1, 0} + T{-1} * quadratic_part(w.x);
    const P rest_y = P{-w.y.c, 0, 1} + T{-1} * quadratic_part(w.y);
    return solve_linear(rest_x, rest_y);
  }
}

/// Bound on the absolute value of a polynomial within `radius` px of the centre; attained at a corner for
/// degree 1.
template <typename T, int kDegree>
DIC_HOST_DEVICE T largest_value(const Polynomial<T, kDegree>& p, T radius) {
  using std::abs;
  T sum = abs(p.c) + radius * (abs(p.x) + abs(p.y));
  if constexpr (kDegree == 2) sum += radius * radius * (abs(p.xx) + abs(p.xy) + abs(p.yy));
  return sum;
}

/// Bound on the length of a displacement within `radius` px of the centre, px.
template <typename T, int kDegree>
DIC_HOST_DEVICE T largest_displacement(const BasicWarp<T, kDegree>& displacement, T radius) {
  using std::sqrt;
  const T u = largest_value(displacement.x, radius), v = largest_value(displacement.y, radius);
  return sqrt(u * u + v * v);
}
inline double largest_displacement(const ShapeParameters& p, double radius) {
  return largest_displacement(displacement_of(p), radius);
}

}  // namespace dic
