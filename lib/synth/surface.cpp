#include "synth/surface.hpp"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace dic::synth {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double sine_over(double angle) { return angle < 1e-4 ? 1 - angle * angle / 6 : std::sin(angle) / angle; }
/// Derivative of sin(x) / x, divided by x.
double slope_of_sine_over(double x) {
  return x < 1e-2 ? -1.0 / 3 + x * x / 30 : (std::cos(x) - std::sin(x) / x) / (x * x);
}

/// Distance along a ray at which it enters the circle or sphere with this radius about 0; infinite if it
/// misses it. Both arguments have only the components that count.
double enter_round(const Vector& origin, const Vector& direction, double radius) {
  const double squared = direction.squaredNorm();
  if (!(squared > 0)) return kInfinity;
  const double nearest = -origin.dot(direction) / squared;
  // The distance of the line from the middle, free of the cancellation of the quadratic equation's
  // discriminant.
  const double inside = radius * radius - (origin + nearest * direction).squaredNorm();
  if (!(inside >= 0)) return kInfinity;
  return nearest - std::sqrt(inside / squared);
}

/// Closes in on the root of f between low, where it is positive, and high, where it is negative (regula
/// falsi, Illinois).
template <typename Function>
double root_between(const Function& f, double low, double high) {
  double above = f(low), below = f(high);
  int side = 0;  // end of the bracket that the last step moved: -1 low, 1 high
  for (int i = 0; i < 100; ++i) {
    const double middle = (low * below - high * above) / (below - above);
    if (!(middle > low && middle < high)) break;
    const double value = f(middle);
    if (std::abs(value) < 1e-12) return middle;
    if (value > 0) {
      low = middle, above = value;
      if (side == -1) below /= 2;
      side = -1;
    } else {
      high = middle, below = value;
      if (side == 1) above /= 2;
      side = 1;
    }
  }
  return std::abs(above) < std::abs(below) ? low : high;
}

}  // namespace

DeformedSurface::DeformedSurface(const SpecimenSurface& surface, const SpecimenMotion& motion, double amount)
    : surface_(surface),
      offset_(amount * motion.inflation * surface.radius_mm),
      bulge_(amount * motion.bulge_mm),
      width_(motion.bulge_width_mm) {
  const double of_wave = surface.kind == SurfaceKind::wave
                             ? 2 * std::numbers::pi * std::abs(surface.amplitude_mm) / surface.period_mm
                             : 0;
  // exp(-r^2 / 2) has at most the slope exp(-0.5). The factor covers coordinates that run faster than mm
  // inside a cylinder or far from the middle of a dome.
  const double of_bulge = 2 * std::exp(-0.5) * std::abs(bulge_) / width_;
  slope_ = std::hypot(1, of_wave) + of_bulge;
}

DeformedSurface::Height DeformedSurface::height(double a, double b) const {
  if (bulge_ == 0) return {offset_, 0, 0};
  const double variance = width_ * width_, bump = bulge_ * std::exp(-(a * a + b * b) / (2 * variance));
  return {offset_ + bump, -bump * a / variance, -bump * b / variance};
}

SurfacePoint DeformedSurface::at(double a, double b) const {
  const Height h = height(a, b);
  const double radius = surface_.radius_mm, r = radius + h.value;
  switch (surface_.kind) {
    case SurfaceKind::plane:
      return {{a, b, -h.value}, {1, 0, -h.along_a}, {0, 1, -h.along_b}};
    case SurfaceKind::wave: {
      const double k = 2 * std::numbers::pi / surface_.period_mm, amplitude = surface_.amplitude_mm;
      return {{a, b, amplitude * (1 - std::cos(k * a)) - h.value},
              {1, 0, amplitude * k * std::sin(k * a) - h.along_a},
              {0, 1, -h.along_b}};
    }
    case SurfaceKind::cylinder: {
      const double s = std::sin(a / radius), c = std::cos(a / radius);
      const Vector outwards(s, 0, -c), around(c, 0, s);
      return {Vector(0, b, radius) + r * outwards, h.along_a * outwards + r / radius * around,
              h.along_b * outwards + Vector::UnitY()};
    }
    case SurfaceKind::dome:
      break;
  }
  const double x = a / radius, y = b / radius, angle = std::hypot(x, y);
  const double s = sine_over(angle), slope = slope_of_sine_over(angle);
  const Vector outwards(s * x, s * y, -std::cos(angle));
  const Vector along_x(s + slope * x * x, slope * x * y, s * x),
      along_y(slope * x * y, s + slope * y * y, s * y);
  return {Vector(0, 0, radius) + r * outwards, h.along_a * outwards + r / radius * along_x,
          h.along_b * outwards + r / radius * along_y};
}

SurfacePlace DeformedSurface::place_of(const Vector& p) const {
  const double radius = surface_.radius_mm;
  switch (surface_.kind) {
    case SurfaceKind::plane:
      return {p.x(), p.y(), -p.z()};
    case SurfaceKind::wave:
      return {
          p.x(), p.y(),
          surface_.amplitude_mm * (1 - std::cos(2 * std::numbers::pi / surface_.period_mm * p.x())) - p.z()};
    case SurfaceKind::cylinder:
      return {radius * std::atan2(p.x(), radius - p.z()), p.y(), std::hypot(p.x(), radius - p.z()) - radius};
    case SurfaceKind::dome:
      break;
  }
  const double across = std::hypot(p.x(), p.y()), angle = std::atan2(across, radius - p.z());
  const double factor = across > 0 ? radius * angle / across : 0;
  return {factor * p.x(), factor * p.y(), std::hypot(across, radius - p.z()) - radius};
}

double DeformedSurface::above(const Vector& p) const {
  if (bulge_ == 0 && surface_.kind == SurfaceKind::cylinder)
    return std::hypot(p.x(), surface_.radius_mm - p.z()) - surface_.radius_mm - offset_;
  const SurfacePlace place = place_of(p);
  return place.height - height(place.a, place.b).value;
}

/// Distance along a ray at which it enters the layer below this height; infinite if it does not.
double DeformedSurface::entry(double height, const Vector& origin, const Vector& direction) const {
  const Vector middle(0, 0, surface_.radius_mm);
  switch (surface_.kind) {
    case SurfaceKind::plane:
    case SurfaceKind::wave:
      return direction.z() > 0 ? (-height - origin.z()) / direction.z() : kInfinity;
    case SurfaceKind::cylinder: {
      const Vector across(1, 0, 1);
      return enter_round((origin - middle).cwiseProduct(across), direction.cwiseProduct(across),
                         surface_.radius_mm + height);
    }
    case SurfaceKind::dome:
      break;
  }
  return enter_round(origin - middle, direction, surface_.radius_mm + height);
}

std::optional<SurfacePlace> DeformedSurface::first_hit(const Vector& origin, const Vector& direction) const {
  const auto point = [&](double t) -> Vector { return origin + t * direction; };
  const double start = std::max(0.0, entry(offset_ + std::max(0.0, bulge_), origin, direction));
  if (!std::isfinite(start)) return std::nullopt;
  if (bulge_ == 0 && surface_.kind != SurfaceKind::wave) return place_of(point(start));
  // A step of the height divided by its greatest slope cannot pass the surface. Close to it, a bracket is
  // tried first.
  constexpr double kClose = 0.05;  // mm
  constexpr int kMostSteps = 2000;
  const auto height_at = [&](double t) { return above(point(t)); };
  const double end = start + 1e4 * (surface_.radius_mm + surface_.period_mm);
  double t = start;
  for (int i = 0; i < kMostSteps && t < end; ++i) {
    const double h = height_at(t);
    if (h <= 0) return place_of(point(t));
    const double step = h / slope_;
    if (h < kClose) {
      if (const double beyond = t + 4 * step; height_at(beyond) < 0)
        return place_of(point(root_between(height_at, t, beyond)));
      if (h < 1e-12) return place_of(point(t));
    }
    t += step;
  }
  return std::nullopt;
}

}  // namespace dic::synth
