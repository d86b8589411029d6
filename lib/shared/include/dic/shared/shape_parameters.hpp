#pragma once

namespace dic {

/// Shape parameters of one subset, px and px per px. With dx and dy from its centre, -radius to radius:
///   u(dx, dy) = u + ux dx + uy dy + uxx dx^2/2 + uxy dx dy + uyy dy^2/2, v likewise.
struct ShapeParameters {
  double u = 0, ux = 0, uy = 0, uxx = 0, uxy = 0, uyy = 0;
  double v = 0, vx = 0, vy = 0, vxx = 0, vxy = 0, vyy = 0;

  constexpr double u_at(double dx, double dy) const {
    return u + ux * dx + uy * dy + 0.5 * uxx * dx * dx + uxy * dx * dy + 0.5 * uyy * dy * dy;
  }
  constexpr double v_at(double dx, double dy) const {
    return v + vx * dx + vy * dy + 0.5 * vxx * dx * dx + vxy * dx * dy + 0.5 * vyy * dy * dy;
  }
};

}  // namespace dic
