#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/shared/split_rules.hpp>

// Tests parts of subsets against pixels that are checked one by one.
namespace dic::track {
namespace {

constexpr int kRadius = 16, kSubset = 2 * kRadius + 1, kSize = 200;

TEST(SubsetParts, HaveThePixelsInsideTheImageOnTheirSide) {
  int oblique = 0, lost = 0;
  for (const double angle : {0.0, 0.3, 0.8, 2.5})
    for (const int x : {3, 20, 100, 180, 196})
      for (int round = 0; round < kSplitRounds; ++round)
        for (int k = 0; k < kDirections; ++k) {
          ShapeParameters shape;  // a rotation about the pixel (100, 100)
          shape.ux = shape.vy = std::cos(angle) - 1;
          shape.uy = -(shape.vx = std::sin(angle));
          const int y = 90;
          shape.u = shape.ux * (x - 100) + shape.uy * (y - 100) + 0.3;
          shape.v = shape.vx * (x - 100) + shape.vy * (y - 100);
          const Direction d = direction(k);
          const double beyond = kept_beyond_centre(round, kRadius), length = std::hypot(d.dx, d.dy);
          int inside = 0, wanted = 0;
          for (int j = -kRadius; j <= kRadius; ++j)
            for (int i = -kRadius; i <= kRadius; ++i) {
              const double at_x = x + i + shape.u_at(i, j), at_y = y + j + shape.v_at(i, j);
              if (std::min(at_x, at_y) < -kAtBorder || std::max(at_x, at_y) > kSize - 1 + kAtBorder) continue;
              ++inside;
              const double along = (d.dx * i + d.dy * j) / length, across = (d.dx * j - d.dy * i) / length;
              const bool counts =
                  round == 0 || (is_wedge(round) ? along - std::abs(across) >= -beyond * std::sqrt(2.0) - 1e-9
                                                 : along >= -beyond - 1e-9);
              wanted += counts;
            }
          if (inside < kSubset * kSubset / 2 || 4 * wanted < kSubset * kSubset) wanted = 0;
          const CountedPart part = part_to_measure({7, x, y, kRadius}, d, round, shape, {kSize, kSize});
          ASSERT_EQ(part.pixels, wanted) << x << ", " << angle << ", round " << round << ", direction " << k;
          lost += wanted == 0;
          oblique += wanted > 0 && !part.part.is_rectangle();
        }
  EXPECT_GT(oblique, 500);
  EXPECT_GT(lost, 50);
}

TEST(SubsetParts, DirectionsAreDistinct) {
  for (int a = 0; a < kDirections; ++a)
    for (int b = 0; b < a; ++b)
      EXPECT_FALSE(direction(a).dx == direction(b).dx && direction(a).dy == direction(b).dy)
          << a << ", " << b;
}

}  // namespace
}  // namespace dic::track
