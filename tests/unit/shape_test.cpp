#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/shared/shape.hpp>

#include "support/refine_support.hpp"

// Tests shape functions, and the peak of a 3x3 neighbourhood.
namespace dic {
namespace {

using namespace test;

std::array<double, 2> apply(const Warp& w, double x, double y) {
  const auto value = [&](const Quadratic& q) {
    return q.c + q.x * x + q.y * y + q.xx * x * x + q.xy * x * y + q.yy * y * y;
  };
  return {value(w.x), value(w.y)};
}

TEST(Shape, WarpMovesByTheDisplacement) {
  const ShapeParameters s = curved(affine(3, -2, 20, 0.1), 0.01);
  for (auto [x, y] : {std::pair{0.0, 0.0}, {5.0, -7.0}, {-16.0, 16.0}}) {
    EXPECT_NEAR(apply(warp_of(s), x, y)[0], x + s.u_at(x, y), 1e-12);
    EXPECT_NEAR(apply(warp_of(s), x, y)[1], y + s.v_at(x, y), 1e-12);
  }
  const ShapeParameters back = parameters_of(warp_of(s));
  EXPECT_NEAR(back.uxx, s.uxx, 1e-15);
  EXPECT_NEAR(back.vxy, s.vxy, 1e-15);
  EXPECT_NEAR(back.vy, s.vy, 1e-15);
}

TEST(Shape, ComposeAndInverseAreExactForAffineWarps) {
  const Warp outer = warp_of(affine(3, -2, 20, 0.1)), inner = warp_of(affine(-7, 0.5, -35, -0.2));
  for (auto [x, y] : {std::pair{0.0, 0.0}, {5.0, -7.0}, {-16.0, 16.0}}) {
    const auto [ix, iy] = apply(inner, x, y);
    EXPECT_NEAR(apply(compose(outer, inner), x, y)[0], apply(outer, ix, iy)[0], 1e-12);
    EXPECT_NEAR(apply(compose(outer, inner), x, y)[1], apply(outer, ix, iy)[1], 1e-12);
    const auto [bx, by] = apply(inverse(inner), ix, iy);
    EXPECT_NEAR(bx, x, 1e-12);
    EXPECT_NEAR(by, y, 1e-12);
  }
}

TEST(Shape, ComposeAgreesToSecondOrderForCurvedWarps) {
  // The dropped terms have degree 3, so halving the distance divides the difference by 8.
  const Warp outer = warp_of(curved(affine(0.4, -0.2, 5, 0.02), 0.003));
  const Warp inner = warp_of(curved(affine(-0.3, 0.1, -4, 0.05), -0.004));
  const auto error = [&](double x, double y) {
    const auto [ix, iy] = apply(inner, x, y);
    const auto direct = apply(outer, ix, iy), composed = apply(compose(outer, inner), x, y);
    return std::hypot(direct[0] - composed[0], direct[1] - composed[1]);
  };
  EXPECT_NEAR(error(0, 0), 0, 1e-14);
  EXPECT_GT(error(16, -12), 1e-4);
  EXPECT_NEAR(error(4, -3) / error(2, -1.5), 8, 0.5);
}

TEST(Shape, InverseAgreesToSecondOrderForCurvedWarps) {
  // The inverse is expanded about the inverse of the linear part, so it is exact to second order without
  // translation.
  const Warp warp = warp_of(curved(affine(0, 0, 5, 0.02), 0.003));
  const auto error = [&](double x, double y) {
    const auto [wx, wy] = apply(warp, x, y);
    const auto [bx, by] = apply(inverse(warp), wx, wy);
    return std::hypot(bx - x, by - y);
  };
  EXPECT_GT(error(16, -12), 1e-4);
  EXPECT_NEAR(error(2, -1.5) / error(1, -0.75), 8, 0.5);
}

TEST(Shape, LargestDisplacementBoundsEveryPixel) {
  for (const ShapeParameters& s :
       {affine(0.01, -0.02, 0, 0), affine(0.3, -0.2, 2, 0.1), curved(affine(0.1, 0, 1, 0), 0.01)}) {
    double largest = 0;
    for (int y = -16; y <= 16; ++y)
      for (int x = -16; x <= 16; ++x) largest = std::max(largest, std::hypot(s.u_at(x, y), s.v_at(x, y)));
    EXPECT_GE(largest_displacement(s, 16), largest - 1e-12);
    EXPECT_LE(largest_displacement(s, 16), 3 * largest);
  }
}

std::array<float, 9> quadratic_surface(double x0, double y0, double xx, double xy, double yy) {
  std::array<float, 9> out{};
  for (int y = -1; y <= 1; ++y)
    for (int x = -1; x <= 1; ++x)
      out[(y + 1) * 3 + x + 1] = static_cast<float>(0.9 + xx * (x - x0) * (x - x0) +
                                                    xy * (x - x0) * (y - y0) + yy * (y - y0) * (y - y0));
  return out;
}

TEST(PeakOffset, IsExactForQuadratics) {
  for (auto [x, y] : {std::pair{0.0, 0.0}, {0.3, -0.45}, {-0.5, 0.5}, {0.11, 0.9}}) {
    const auto peak = peak_offset(quadratic_surface(x, y, -0.1, 0.05, -0.2));
    EXPECT_NEAR(peak[0], x, 1e-5);
    EXPECT_NEAR(peak[1], y, 1e-5);
  }
}

TEST(PeakOffset, StaysWithinOnePixel) {
  const auto peak = peak_offset(quadratic_surface(4, -3, -0.1, 0, -0.2));
  EXPECT_EQ(peak[0], 1);
  EXPECT_EQ(peak[1], -1);
}

TEST(PeakOffset, IsZeroWhereThereIsNoMaximum) {
  const std::array<double, 2> zero{0, 0};
  EXPECT_EQ(peak_offset(quadratic_surface(0.3, 0.2, 0.1, 0, 0.2)), zero);   // minimum
  EXPECT_EQ(peak_offset(quadratic_surface(0.3, 0.2, -0.1, 0, 0.2)), zero);  // saddle
  EXPECT_EQ(peak_offset(quadratic_surface(0, 0, 0, 0, 0)), zero);           // flat
  EXPECT_EQ(peak_offset(quadratic_surface(0.3, 0.2, -0.1, 0, 0)), zero);    // ridge
}

}  // namespace
}  // namespace dic
