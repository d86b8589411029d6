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

/// A measurement of a part, as both backends give it to the rules.
struct MeasuredPart {
  Status status = Status::ok;
  float zncc = 0.9F, residual_sd = 1, unit_sigma_u = 0.01F, unit_sigma_v = 0.01F;
};

constexpr ResidualLevel kLevel{2, 2.2F, true};
constexpr int kPixels = 300;

bool is_refuted_at(const MeasuredPart& part, double u, const ResidualLevel& level = kLevel) {
  ShapeParameters found;
  found.u = u;
  return is_refuted(part, found, ShapeParameters(), level, kPixels);
}

TEST(ProbedDirections, AreRefutedByAnotherMotionOrALargeResidual) {
  EXPECT_FALSE(is_refuted_at({.residual_sd = 2}, 0.4));
  EXPECT_TRUE(is_refuted_at({.residual_sd = 20}, 0.4));
  EXPECT_FALSE(is_refuted_at({.zncc = 0.9999F, .residual_sd = 20}, 0.4));  // an exact match is not doubtful
  EXPECT_FALSE(is_refuted_at({.residual_sd = 2}, 0.99 * kAgreement));
  EXPECT_TRUE(is_refuted_at({.residual_sd = 2}, 1.01 * kAgreement));
}

TEST(ProbedDirections, AreRefutedByWrongEndsAndNotByMissingPixels) {
  for (const Status status : {Status::low_correlation, Status::diverged})
    EXPECT_TRUE(is_refuted_at({.status = status}, 0)) << static_cast<int>(status);
  for (const Status status : {Status::flat, Status::masked, Status::out_of_image})
    EXPECT_FALSE(is_refuted_at({.status = status}, 0)) << static_cast<int>(status);
}

// A part that does not settle may be too small for its noise: residuals of 2.2 grey levels displace it by
// 0.25 px if a noise of 1 displaces it by 0.1136 px.
TEST(ProbedDirections, ThatDoNotSettleAreRefutedByTheirNoise) {
  const auto unsettled = [](float sigma_u, float sigma_v) {
    return MeasuredPart{.status = Status::not_converged, .unit_sigma_u = sigma_u, .unit_sigma_v = sigma_v};
  };
  EXPECT_FALSE(is_refuted_at(unsettled(0.11F, 0.11F), 0));
  EXPECT_TRUE(is_refuted_at(unsettled(0.12F, 0.01F), 0));
  EXPECT_TRUE(is_refuted_at(unsettled(0.01F, 0.12F), 0));
  EXPECT_FALSE(
      is_refuted_at(unsettled(0.12F, 0.12F), 0, ResidualLevel()));  // no residual is known to be normal
}

// Parts that lie in all larger ones of their direction show what these would find.
TEST(ProbedDirections, AreProbedWithPixelsOfAllLargerParts) {
  const SquareSubset subset{0, 100, 100, kRadius};
  const auto part = [&](int k, int round) {
    return part_to_measure(subset, direction(k), round, ShapeParameters(), {kSize, kSize});
  };
  for (int k = 0; k < kDirections; ++k) {
    const CountedPart probe = part(k, kProbingRound);
    ASSERT_GT(probe.pixels, 0);
    for (int round = 0; round < kProbingRound; ++round) {
      const CountedPart larger = part(k, round);
      EXPECT_GE(larger.pixels, probe.pixels);
      int outside = 0;
      for (int j = probe.part.top; j <= probe.part.bottom; ++j)
        for (int i = probe.part.row(j).first; i <= probe.part.row(j).last; ++i) {
          const PartRow row = larger.part.row(j);
          outside += j < larger.part.top || j > larger.part.bottom || i < row.first || i > row.last;
        }
      EXPECT_LE(outside, 0.01 * probe.pixels) << "direction " << k << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace dic::track
