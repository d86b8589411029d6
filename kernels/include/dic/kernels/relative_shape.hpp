#pragma once

#include <cmath>
#include <cstdint>
#include <dic/shared/host_device.hpp>
#include <dic/shared/shape_parameters.hpp>

namespace dic::kernels {

/// Displacement polynomials relative to a whole-pixel displacement: only then are floats precise enough.
/// Coefficients of 1, dx, dy, dx^2, dx dy, dy^2.
struct RelativeShape {
  float u[6] = {}, v[6] = {};
};

/// A displacement in two parts: whole pixels, and the rest.
struct SplitDisplacement {
  std::int32_t whole = 0;
  float rest = 0;

  SplitDisplacement() = default;
  DIC_HOST_DEVICE explicit SplitDisplacement(double displacement) : rest(static_cast<float>(displacement)) {
    if (!std::isfinite(displacement)) return;
    constexpr double farthest = 1 << 24;  // outside any image
    const double d = std::fmin(std::fmax(displacement, -farthest), farthest), nearest = std::nearbyint(d);
    whole = static_cast<std::int32_t>(nearest);
    rest = static_cast<float>(d - nearest);
  }
};

/// A shape in two parts.
struct SplitShape {
  std::int32_t u = 0, v = 0;
  RelativeShape rest;
};

DIC_HOST_DEVICE inline SplitShape split(const ShapeParameters& s) {
  const SplitDisplacement u(s.u), v(s.v);
  const auto f = [](double value) { return static_cast<float>(value); };
  return {u.whole,
          v.whole,
          {{u.rest, f(s.ux), f(s.uy), f(0.5 * s.uxx), f(s.uxy), f(0.5 * s.uyy)},
           {v.rest, f(s.vx), f(s.vy), f(0.5 * s.vxx), f(s.vxy), f(0.5 * s.vyy)}}};
}

DIC_HOST_DEVICE inline ShapeParameters joined(std::int32_t u, std::int32_t v, const RelativeShape& rest) {
  return {
      u + double{rest.u[0]}, rest.u[1], rest.u[2], 2 * double{rest.u[3]}, rest.u[4], 2 * double{rest.u[5]},
      v + double{rest.v[0]}, rest.v[1], rest.v[2], 2 * double{rest.v[3]}, rest.v[4], 2 * double{rest.v[5]}};
}

}  // namespace dic::kernels
