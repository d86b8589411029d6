#include <gtest/gtest.h>

#include <cmath>
#include <dic/fields.hpp>
#include <limits>

#include "validate/metrics.hpp"
#include "validate/resolution.hpp"
#include "validate/validate.hpp"

namespace dic::validation {
namespace {

/// An ok point at the truth (1, 2) with sigma 0.01.
JudgedPoint point(double error_u = 0, double error_v = 0) {
  JudgedPoint p;
  p.status = Status::ok;
  p.true_u = 1;
  p.true_v = 2;
  p.u = 1 + error_u;
  p.v = 2 + error_v;
  p.sigma_u = p.sigma_v = 0.01;
  return p;
}

Metrics judged(const std::vector<JudgedPoint>& points) {
  Judge judge;
  for (const JudgedPoint& p : points) judge.add(p);
  return judge.metrics();
}

TEST(JudgeTest, BiasScatterAndSigmaAreThoseComputedByHand) {
  const Metrics m = judged({point(0.01, 0.02), point(0.03, 0.02)});
  EXPECT_NEAR(m.bias[0], 0.02, 1e-12);
  EXPECT_NEAR(m.bias[1], 0.02, 1e-12);
  EXPECT_NEAR(m.sd[0], 0.01, 1e-12);
  EXPECT_NEAR(m.sd[1], 0, 1e-9);
  EXPECT_NEAR(m.rmse[0], std::sqrt((1e-4 + 9e-4) / 2), 1e-12);
  EXPECT_NEAR(m.scatter[0], std::sqrt((1 + 9) / 2.0), 1e-9);
  EXPECT_NEAR(m.scatter[1], 2, 1e-9);
  EXPECT_NEAR(m.mean_scatter(), std::sqrt((5 + 4) / 2.0), 1e-9);
  EXPECT_NEAR(m.mean_sigma(), 0.01, 1e-12);
  EXPECT_EQ(m.false_ok, 0);
}

TEST(JudgeTest, FalseOkIsWhatIsHiddenGrossOrBeyondFiveSigma) {
  JudgedPoint hidden = point(), lost = point();
  hidden.measurable = Measurable::no;
  lost.status = Status::low_correlation;
  const Metrics m = judged({point(), point(0.049), point(0.051), point(0, -0.6), hidden, lost});
  EXPECT_EQ(m.points, 6);
  EXPECT_EQ(m.ok, 5);
  EXPECT_EQ(m.hidden_ok, 1);
  EXPECT_EQ(m.gross, 1);
  EXPECT_EQ(m.beyond_sigma, 2);  // includes the gross one
  EXPECT_EQ(m.false_ok, 3);
  EXPECT_DOUBLE_EQ(m.false_share(), 3 / 5.0);
  EXPECT_EQ(m.measurable, 5);
  EXPECT_EQ(m.lost, 1);
  EXPECT_DOUBLE_EQ(m.lost_share(), 1 / 5.0);
  EXPECT_NEAR(m.worst, 0.6, 1e-12);
  EXPECT_EQ(m.judged, 3) << "neither what is hidden nor what is gross counts in the scatter";
}

TEST(JudgeTest, SigmaOfZeroOrNanIsFalseWhereThereIsAnError) {
  JudgedPoint certain = point(1e-9), right = point(), unknown = point();
  certain.sigma_u = right.sigma_u = 0;
  unknown.sigma_u = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(judged({certain}).false_ok, 1);
  EXPECT_EQ(judged({right}).false_ok, 0);
  unknown.u += 1e-9;
  EXPECT_EQ(judged({unknown}).false_ok, 1);
}

TEST(JudgeTest, TheErrorOfTheTruthWidensWhatIsAllowed) {
  JudgedPoint p = point(0.08);
  EXPECT_EQ(judged({p}).false_ok, 1);
  p.truth_error = 0.02;  // hypot(0.01, 0.02) * 5 = 0.11
  EXPECT_EQ(judged({p}).false_ok, 0);
  p.truth_error = 2;
  p.u = p.true_u + 9;
  EXPECT_EQ(judged({p}).gross, 0);
  p.u = p.true_u + 11;
  EXPECT_EQ(judged({p}).gross, 1);
}

TEST(JudgeTest, PointsThatNeedNotBeMeasuredAreNotLost) {
  JudgedPoint maybe = point(), little = point(), hidden = point();
  maybe.status = little.status = hidden.status = Status::out_of_image;
  maybe.measurable = Measurable::maybe;
  hidden.measurable = Measurable::no;
  little.expected = false;
  const Metrics m = judged({maybe, little, hidden});
  EXPECT_EQ(m.measurable, 0);
  EXPECT_EQ(m.lost, 0);
  EXPECT_EQ(m.lost_share(), 0);
  EXPECT_TRUE(std::isnan(m.largest_bias()));
}

TEST(JudgeTest, PointsBesideAnEdgeAreRightWithinThreeSigma) {
  std::vector<JudgedPoint> points = {point(0.02), point(0.04), point(0), point(0)};
  points[2].status = Status::diverged;
  for (JudgedPoint& p : points) p.near_edge = true;
  points[3].near_edge = false;
  const Metrics m = judged(points);
  EXPECT_EQ(m.near_edge, 3);
  EXPECT_EQ(m.near_edge_right, 1);
}

TEST(JudgeTest, StrainIsComparedWithItsSigma) {
  std::vector<JudgedPoint> points = {point(0), point(0)};
  for (JudgedPoint& p : points) p.has_strain = true, p.strain_sigma = {1e-4F, 2e-4F, 1e-4F};
  points[0].strain_error = {1e-4F, 2e-4F, 1e-4F}, points[1].strain_error = {-1e-4F, 10e-4F, 0};
  EXPECT_NEAR(*judged(points).strain_scatter, std::sqrt((1 + 25) / 2.0), 1e-6)
      << "that of eyy is the largest";
  EXPECT_NEAR(*combined({judged({}), judged(points)}).strain_scatter, std::sqrt(13.0), 1e-6);
  EXPECT_FALSE(judged({point(0)}).strain_scatter.has_value());
}

TEST(CombinedTest, CountsAreSummedAndTheWorstBiasStays) {
  const Metrics a = judged({point(0.01), point(0.01)}), b = judged({point(-0.03), point(0.9)});
  const Metrics both = combined({a, b, judged({})});
  EXPECT_EQ(both.ok, 4);
  EXPECT_EQ(both.gross, 1);
  EXPECT_NEAR(both.bias[0], -0.03, 1e-12);
  EXPECT_NEAR(both.scatter[0], std::sqrt((1 + 1 + 9) / 3.0), 1e-9);
  EXPECT_TRUE(std::isnan(combined({judged({})}).largest_bias()));
}

TEST(BoundsTest, EachBoundHoldsAtItsValueAndBreaksBeyond) {
  Metrics m = judged({point(0.02), point(0.02)});
  m.strain = {0.001, 0.1};
  m.near_edge = 10;
  m.near_edge_right = 9;
  const Resolution resolution{{}, 50, 0.01};
  const auto broken = [&](const Bounds& bounds) { return broken_bounds(bounds, m, resolution).size(); };
  EXPECT_EQ(broken({}), 0);
  EXPECT_EQ(broken({.bias = 0.0201}), 0);
  EXPECT_EQ(broken({.bias = 0.0199}), 1);
  EXPECT_EQ(broken({.rmse = 0.0199}), 1);
  EXPECT_EQ(broken({.scatter = Bounds::Range{0, 1.5}}), 0);
  EXPECT_EQ(broken({.scatter = Bounds::Range{0, 1.4}}), 1);
  EXPECT_EQ(broken({.scatter = Bounds::Range{1.5, 2}}), 1);
  EXPECT_EQ(broken({.near_edge = 0.9}), 0);
  EXPECT_EQ(broken({.near_edge = 0.95}), 1);
  EXPECT_EQ(broken({.resolution = 49}), 1);
  EXPECT_EQ(broken({.strain_bias = 0.0005}), 1);
  EXPECT_EQ(broken({.strain_scatter = Bounds::Range{1.5, 2}}), 0) << "no strain was judged";
  m.strain_scatter = 1.4;
  EXPECT_EQ(broken({.strain_scatter = Bounds::Range{1.3, 1.4}}), 0);
  EXPECT_EQ(broken({.strain_scatter = Bounds::Range{1.5, 2}}), 1);
  EXPECT_EQ(broken({.strain_scatter = Bounds::Range{0, 1.3}}), 1);
  EXPECT_EQ(broken({.false_ok = 0, .lost = 0}), 0);
  m.false_ok = m.lost = 1;
  EXPECT_EQ(broken({.false_ok = 0, .lost = 0}), 2);
  EXPECT_EQ(broken({.false_ok = 0.5, .lost = 0.5}), 0);
}

/// The field shows a share of the true displacement that depends on the period.
TEST(ResolutionTest, TheTransferIsThatOfAKnownFilter) {
  for (const MotionKind kind : {MotionKind::star, MotionKind::chirp}) {
    Motion motion;
    motion.kind = kind;
    motion.width = 1501;
    motion.cy = 60;
    Grid grid{0, 0, 2, 751, 61, std::vector<std::uint8_t>(751 * 61, 1)};
    Field field(grid);
    // The filter passes nine tenths at 60 px.
    const auto filter = [](double period) { return 1 - 0.1 * std::pow(60 / period, 2); };
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const int k = j * grid.nx + i;
        const auto [u, v] = motion.at(grid.x(i), grid.y(j), 1);
        const double period = 200 - 190 * grid.x(i) / 1500.0;
        field.status[k] = Status::ok;
        field.u[k] = filter(period) * u;
        field.v[k] = filter(period) * v;
      }
    const auto curve = transfer_of(motion, 1, field);
    ASSERT_GT(curve.size(), 20U);
    for (const Transfer& t : curve) {
      if (t.period < 40) break;
      EXPECT_NEAR(t.share, filter(t.period), 0.01) << t.period;
    }
    EXPECT_NEAR(period_of_loss(curve), 60, 2);
  }
}

TEST(ResolutionTest, TheLossIsInterpolatedAndHasEnds) {
  EXPECT_DOUBLE_EQ(period_of_loss({{100, 1.0}, {50, 0.8}}), 75);
  EXPECT_DOUBLE_EQ(period_of_loss({{100, 1.0}, {50, 0.95}}), 50);
  EXPECT_TRUE(std::isinf(period_of_loss({{100, 0.5}, {50, 0.4}})));
}

}  // namespace
}  // namespace dic::validation
