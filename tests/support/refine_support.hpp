#pragma once

#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <dic/refine.hpp>
#include <dic/shared/reflect.hpp>
#include <dic/shared/shape.hpp>
#include <numbers>
#include <vector>

#include "refine/image.hpp"
#include "support/naive_spline.hpp"
#include "support/speckle.hpp"

namespace dic::test {

/// Calls body once for every SIMD target of this machine and build.
template <typename Body>
void on_every_simd_target(const Body& body) {
  const std::int64_t all = hwy::SupportedTargets();
  for (std::int64_t target = 1; target > 0; target <<= 1) {
    if ((all & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

inline ShapeParameters affine(double u, double v, double angle_deg, double stretch) {
  const double a = angle_deg * std::numbers::pi / 180;
  ShapeParameters s;
  s.u = u;
  s.v = v;
  s.ux = (1 + stretch) * std::cos(a) - 1;
  s.uy = -std::sin(a);
  s.vx = (1 + stretch) * std::sin(a);
  s.vy = std::cos(a) - 1;
  return s;
}

inline ShapeParameters curved(ShapeParameters s, double curvature) {
  s.uxx = curvature;
  s.uxy = -0.7 * curvature;
  s.uyy = 0.4 * curvature;
  s.vxx = -0.5 * curvature;
  s.vxy = 0.9 * curvature;
  s.vyy = -curvature;
  return s;
}

/// A reference image whose pixel X shows the same as the current image at X + displacement(X), so that the
/// truth is exact without an inverse.
template <typename Displacement>
struct Pair {
  Image reference, current;
  Displacement displacement;
};

template <typename Displacement>
Pair<Displacement> speckle_pair(int width, int height, double sigma, unsigned seed,
                                const Displacement& displacement) {
  const Speckle speckle(width, height, sigma, seed);
  const auto moved = [&](int x, int y) {
    const auto [u, v] = displacement(x, y);
    return grey_of(speckle(x + u, y + v));
  };
  return {image_of(width, height, moved),
          image_of(width, height, [&](int x, int y) { return grey_of(speckle(x, y)); }), displacement};
}

inline auto translation(double u, double v) {
  return [=](double, double) { return std::array{u, v}; };
}
/// Displacement field of a shape function about (cx, cy).
inline auto shape_field(const ShapeParameters& s, double cx, double cy) {
  return [=](double x, double y) { return std::array{s.u_at(x - cx, y - cy), s.v_at(x - cx, y - cy)}; };
}
/// The parameters of a shape function about a centre that is moved by (dx, dy).
inline ShapeParameters moved_centre(const ShapeParameters& s, double dx, double dy) {
  ShapeParameters out = s;
  out.u = s.u_at(dx, dy);
  out.v = s.v_at(dx, dy);
  out.ux = s.ux + s.uxx * dx + s.uxy * dy;
  out.uy = s.uy + s.uxy * dx + s.uyy * dy;
  out.vx = s.vx + s.vxx * dx + s.vxy * dy;
  out.vy = s.vy + s.vxy * dx + s.vyy * dy;
  return out;
}

struct Points {
  std::vector<int> x, y;
};
inline Points grid_points(int width, int height, int margin, int step) {
  Points out;
  for (int y = margin; y < height - margin; y += step)
    for (int x = margin; x < width - margin; x += step) {
      out.x.push_back(x);
      out.y.push_back(y);
    }
  return out;
}

inline Refiner refiner_of(const RefineOptions& options, ImageView reference, ImageView current,
                          const Points& points, ImageView roi = {}, int threads = 1) {
  Refiner refiner(options, "cpu", threads);
  refiner.set_reference(reference, points.x, points.y, roi);
  refiner.set_current(current);
  return refiner;
}

inline RefinedPoint refine_one(const RefineOptions& options, ImageView reference, ImageView current, int x,
                               int y, const ShapeParameters& start = {}, ImageView roi = {}) {
  return refiner_of(options, reference, current, {{x}, {y}}, roi).refine(0, start);
}

inline ShapeParameters start_at(double u, double v) {
  ShapeParameters s;
  s.u = u;
  s.v = v;
  return s;
}

inline RefineOptions options_of(int subset, int order, Interpolation interpolation = Interpolation::cubic) {
  RefineOptions options;
  options.subset = subset;
  options.order = order;
  options.interpolation = interpolation;
  return options;
}

inline double naive_zncc(const Image& reference, const NaiveSpline& current, int x, int y, int radius,
                         const ShapeParameters& s) {
  double n = 0, f1 = 0, g1 = 0, ff = 0, gg = 0, fg = 0;
  for (int j = -radius; j <= radius; ++j)
    for (int i = -radius; i <= radius; ++i) {
      const double f = reference.row<float>(y + j)[x + i];
      const double g = current.at(x + i + s.u_at(i, j), y + j + s.v_at(i, j));
      n += 1, f1 += f, g1 += g, ff += f * f, gg += g * g, fg += f * g;
    }
  return (fg - f1 * g1 / n) / std::sqrt((ff - f1 * f1 / n) * (gg - g1 * g1 / n));
}

}  // namespace dic::test
