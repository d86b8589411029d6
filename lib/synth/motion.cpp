#include "synth/motion.hpp"

#include <cmath>
#include <numbers>

namespace dic {
namespace {

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

double star_frequency(const Motion& motion, double x) {
  const double part = x / (motion.width - 1);
  return 2 * std::numbers::pi / (motion.period_max + part * (motion.period_min - motion.period_max));
}

/// Solves y = Y + a cos(w (Y - cy)) for Y. The left side must grow with Y: |a| w < 1. A Newton step that
/// leaves the bracket is replaced by bisection, so that it converges near that limit too.
double undo_star(double a, double w, double cy, double y) {
  constexpr double kLastStep = 1e-9;  // Newton squares the error: what remains is below the rounding
  double low = y - std::abs(a), high = y + std::abs(a), position = y;
  for (int i = 0; i < 100; ++i) {
    const double phase = w * (position - cy);
    const double excess = position + a * std::cos(phase) - y;
    const double next = position - excess / (1 - a * w * std::sin(phase));
    if (std::abs(next - position) < kLastStep) return next;
    (excess > 0 ? high : low) = position;
    position = next > low && next < high ? next : (low + high) / 2;
  }
  return position;
}

Position undo_affine(const Motion& m, double amount, double x, double y) {
  const double fxx = 1 + amount * m.ux, fxy = amount * m.uy, fyx = amount * m.vx, fyy = 1 + amount * m.vy;
  const double dx = x - m.cx - amount * m.u, dy = y - m.cy - amount * m.v;
  const double det = fxx * fyy - fxy * fyx;
  return {m.cx + (fyy * dx - fxy * dy) / det, m.cy + (fxx * dy - fyx * dx) / det};
}

std::optional<Position> undo_crack(const Motion& m, double amount, double x, double y) {
  const double half = amount * m.amplitude;
  if (y + half < m.crack_y) return Position{x, y + half};
  if (y - half >= m.crack_y) return Position{x, y - half};
  return std::nullopt;
}

Position rotate(const Motion& m, double angle, double x, double y) {
  const double c = std::cos(angle), s = std::sin(angle), dx = x - m.cx, dy = y - m.cy;
  return {m.cx + c * dx - s * dy, m.cy + s * dx + c * dy};
}

}  // namespace

std::array<double, 2> Motion::at(double x, double y, double amount) const {
  switch (kind) {
    case MotionKind::translation:
      return {amount * u, amount * v};
    case MotionKind::affine:
      return {amount * (u + ux * (x - cx) + uy * (y - cy)), amount * (v + vx * (x - cx) + vy * (y - cy))};
    case MotionKind::rotation: {
      const Position rotated = rotate(*this, radians(amount * angle_deg), x, y);
      return {rotated.x - x, rotated.y - y};
    }
    case MotionKind::star:
      return {0, amount * amplitude * std::cos(star_frequency(*this, x) * (y - cy))};
    case MotionKind::crack:
      break;
  }
  return {0, amount * (y < crack_y ? -amplitude : amplitude)};
}

std::optional<Position> reference_position(const Motion& motion, double amount, double x, double y) {
  switch (motion.kind) {
    case MotionKind::translation:
      return Position{x - amount * motion.u, y - amount * motion.v};
    case MotionKind::affine:
      return undo_affine(motion, amount, x, y);
    case MotionKind::rotation:
      return rotate(motion, radians(-amount * motion.angle_deg), x, y);
    case MotionKind::star:
      return Position{x, undo_star(amount * motion.amplitude, star_frequency(motion, x), motion.cy, y)};
    case MotionKind::crack:
      break;
  }
  return undo_crack(motion, amount, x, y);
}

}  // namespace dic
