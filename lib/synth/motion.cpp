#include "synth/motion.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dic {

using namespace synth;

namespace {

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

/// Phase of the chirp at x: the integral of 2 pi / period.
double chirp_phase(const Motion& m, double x) {
  const double fall = (m.period_max - m.period_min) / (m.width - 1);
  if (fall == 0) return 2 * std::numbers::pi * x / m.period_max;
  // Outside the image, the period stays constant.
  const double inside = std::clamp(x, 0.0, m.width - 1), period = m.period_max - fall * inside;
  return 2 * std::numbers::pi * (std::log(m.period_max / period) / fall + (x - inside) / period);
}

double chirp(const Motion& m, double amount, double x) {
  return amount * m.amplitude * std::sin(chirp_phase(m, x));
}

double ramp(const Motion& m, double amount, double x) {
  return amount * m.amplitude * std::clamp((x - m.cx) / m.length + 0.5, 0.0, 1.0);
}

/// Solves x = X + displacement(X) for X, where X + displacement grows with X and |displacement| <= bound. The
/// line through the ends of the bracket (regula falsi, Illinois) halves the weight of an end that stays, and
/// so closes in from both sides.
template <typename Displacement>
double undo_along(const Displacement& displacement, double bound, double x) {
  constexpr double kLast = 5e-13;  // px; rounding is a fifth of it at 1,000 px
  double low = x - bound, high = x + bound;
  double below = low + displacement(low) - x, above = high + displacement(high) - x;
  int side = 0;  // end of the bracket that the last step moved: -1 low, 1 high
  for (int i = 0; i < 100 && high - low > kLast; ++i) {
    if (below >= 0) return low;
    if (above <= 0) return high;
    const double middle = (low * above - high * below) / (above - below);
    const double excess = middle + displacement(middle) - x;
    if (std::abs(excess) < kLast || middle <= low || middle >= high) return middle;
    if (excess > 0) {
      high = middle;
      above = excess;
      if (side == 1) below /= 2;
      side = 1;
    } else {
      low = middle;
      below = excess;
      if (side == -1) above /= 2;
      side = -1;
    }
  }
  return (low + high) / 2;
}

double star_frequency(const Motion& motion, double x) {
  const double part = x / (motion.width - 1);
  return 2 * std::numbers::pi / (motion.period_max + part * (motion.period_min - motion.period_max));
}

/// Solves y = Y + a cos(w (Y - cy)) for Y. The left side must grow with Y: |a| w < 1. A Newton step that
/// leaves the bracket is replaced by bisection, so that it converges near that limit too.
double undo_star(double a, double w, double cy, double y) {
  constexpr double kLastStep = 1e-9;  // Newton squares the error, so the rest is below rounding
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

/// The directions along a crack and across it.
struct CrackFrame {
  const Motion& m;
  double c = std::cos(radians(m.angle_deg)), s = std::sin(radians(m.angle_deg));

  /// Signed distance from the crack, px; negative above it.
  double across(double x, double y) const { return c * (y - m.crack_y) - s * (x - m.cx); }
  /// Displacement of the material below the crack.
  std::array<double, 2> motion(double amount) const {
    const double slip = amount * m.slip, half = amount * m.amplitude;
    return {slip * c - half * s, slip * s + half * c};
  }
};

std::optional<MaterialPoint> undo_crack(const Motion& m, double amount, double x, double y) {
  const CrackFrame crack{m};
  const auto [u, v] = crack.motion(amount);
  const double half = amount * m.amplitude, across = crack.across(x, y);
  if (across + half < 0) return MaterialPoint{{x + u, y + v}, 0};
  if (across - half >= 0) return MaterialPoint{{x - u, y - v}, 1};
  return std::nullopt;
}

constexpr double kHalfEdge = 0.5;  // half of the width of the edge of a hole, px

/// Displacement of a plate with a hole at (dx, dy) from the centre of the hole. The edge of the hole moves
/// like the affine motion that fills it.
std::array<double, 2> move_hole(const Motion& m, double amount, double dx, double dy) {
  constexpr double kPoisson = 0.3, kKolosov = (3 - kPoisson) / (1 + kPoisson);  // plane stress
  const double strain = amount * m.vy, distance = std::hypot(dx, dy);
  if (distance <= m.radius) return {-strain * dx, 3 * strain * dy};
  const double c = dy / distance, s = dx / distance;  // of the angle from the direction of the pull
  const double c3 = c * (4 * c * c - 3), s3 = s * (3 - 4 * s * s), near = m.radius / distance;
  const double along = (kKolosov + 1) * c / near + 2 * near * ((1 + kKolosov) * c + c3 - near * near * c3);
  const double across = (kKolosov - 3) * s / near + 2 * near * ((1 - kKolosov) * s + s3 - near * near * s3);
  const double factor = strain * (1 + kPoisson) / 4 * m.radius;
  return {factor * across, factor * along};
}

/// Solves X + u(X) = x by iteration, which converges as the gradient of u stays below 0.5 (impossible()).
std::optional<MaterialPoint> undo_hole(const Motion& m, double amount, double x, double y) {
  constexpr double kLastStep = 5e-13;  // px
  double dx = x - m.cx, dy = y - m.cy, step = 1;
  for (int i = 0; i < 100 && step > kLastStep; ++i) {
    const auto [u, v] = move_hole(m, amount, dx, dy);
    const double next_x = x - m.cx - u, next_y = y - m.cy - v;
    step = std::hypot(next_x - dx, next_y - dy);
    dx = next_x, dy = next_y;
  }
  if (std::hypot(dx, dy) < m.radius - kHalfEdge) return std::nullopt;
  return MaterialPoint{{m.cx + dx, m.cy + dy}};
}

Position rotate(Position centre, double angle, double x, double y) {
  const double c = std::cos(angle), s = std::sin(angle), dx = x - centre.x, dy = y - centre.y;
  return {centre.x + c * dx - s * dy, centre.y + s * dx + c * dy};
}

bool covers(const Motion::Body& body, Position p) {
  return std::hypot(p.x - body.x, p.y - body.y) < body.radius;
}

/// The body in front, if any covers the point: `place` gives the reference position on a body.
template <typename Place>
std::optional<MaterialPoint> in_front(const Motion& m, const Place& place) {
  for (int k = static_cast<int>(m.bodies.size()); k-- > 0;)
    if (const Position p = place(m.bodies[k]); covers(m.bodies[k], p)) return MaterialPoint{p, k + 1};
  return std::nullopt;
}

MaterialPoint undo_bodies(const Motion& m, double amount, double x, double y) {
  const auto front = in_front(m, [&](const Motion::Body& b) {
    return rotate({b.x, b.y}, radians(-amount * b.angle_deg), x - amount * b.u, y - amount * b.v);
  });
  return front.value_or(MaterialPoint{{x - amount * m.u, y - amount * m.v}, 0});
}

std::array<double, 2> move_bodies(const Motion& m, double amount, double x, double y) {
  const int k = m.body(x, y);
  if (k == 0) return {amount * m.u, amount * m.v};
  const Motion::Body& b = m.bodies[k - 1];
  const Position turned = rotate({b.x, b.y}, radians(amount * b.angle_deg), x, y);
  return {turned.x - x + amount * b.u, turned.y - y + amount * b.v};
}

}  // namespace

std::array<double, 2> Motion::at(double x, double y, double amount) const {
  switch (kind) {
    case MotionKind::translation:
      return {amount * u, amount * v};
    case MotionKind::affine:
      return {amount * (u + ux * (x - cx) + uy * (y - cy)), amount * (v + vx * (x - cx) + vy * (y - cy))};
    case MotionKind::rotation: {
      const Position rotated = rotate({cx, cy}, radians(amount * angle_deg), x, y);
      return {rotated.x - x, rotated.y - y};
    }
    case MotionKind::star:
      return {0, amount * amplitude * std::cos(star_frequency(*this, x) * (y - cy))};
    case MotionKind::chirp:
      return {chirp(*this, amount, x), 0};
    case MotionKind::ramp:
      return {ramp(*this, amount, x), 0};
    case MotionKind::bodies:
      return move_bodies(*this, amount, x, y);
    case MotionKind::hole:
      return move_hole(*this, amount, x - cx, y - cy);
    case MotionKind::crack:
      break;
  }
  const CrackFrame crack{*this};
  return crack.motion(crack.across(x, y) < 0 ? -amount : amount);
}

int Motion::body(double x, double y) const {
  if (kind == MotionKind::crack) return CrackFrame{*this}.across(x, y) < 0 ? 0 : 1;
  if (kind != MotionKind::bodies) return 0;
  const auto front = in_front(*this, [&](const Body&) { return Position{x, y}; });
  return front ? front->body : 0;
}

bool Motion::visible(double x, double y, double amount) const {
  const auto moved = at(x, y, amount);
  const auto seen = reference_position(*this, amount, x + moved[0], y + moved[1]);
  return seen && seen->body == body(x, y);
}

std::optional<MaterialPoint> synth::reference_position(const Motion& motion, double amount, double x,
                                                       double y) {
  switch (motion.kind) {
    case MotionKind::translation:
      return MaterialPoint{{x - amount * motion.u, y - amount * motion.v}};
    case MotionKind::affine:
      return MaterialPoint{undo_affine(motion, amount, x, y)};
    case MotionKind::rotation:
      return MaterialPoint{rotate({motion.cx, motion.cy}, radians(-amount * motion.angle_deg), x, y)};
    case MotionKind::star:
      return MaterialPoint{
          {x, undo_star(amount * motion.amplitude, star_frequency(motion, x), motion.cy, y)}};
    case MotionKind::chirp:
    case MotionKind::ramp: {
      const auto displacement = [&](double place) {
        return motion.kind == MotionKind::chirp ? chirp(motion, amount, place) : ramp(motion, amount, place);
      };
      return MaterialPoint{{undo_along(displacement, std::abs(amount * motion.amplitude), x), y}};
    }
    case MotionKind::bodies:
      return undo_bodies(motion, amount, x, y);
    case MotionKind::hole:
      return undo_hole(motion, amount, x, y);
    case MotionKind::crack:
      break;
  }
  return undo_crack(motion, amount, x, y);
}

double synth::material_share(const Motion& motion, const MaterialPoint& seen) {
  if (motion.kind != MotionKind::hole || motion.textured_gap) return 1;
  const double outside = std::hypot(seen.x - motion.cx, seen.y - motion.cy) - motion.radius;
  return std::clamp((outside + kHalfEdge) / (2 * kHalfEdge), 0.0, 1.0);
}

}  // namespace dic
