#include <gtest/gtest.h>

#include <cmath>
#include <dic/shared/common_motion.hpp>
#include <random>
#include <vector>

// Tests the motion that most points share.
namespace dic::track {
namespace {

constexpr double kReach = 2;

/// A turn by 0.4 degrees about (700, 500) and a shift, px.
double true_u(double x, double y) { return 5 - 0.007 * (y - 500) + 0.001 * (x - 700); }
double true_v(double x, double y) { return -6 + 0.007 * (x - 700) - 0.002 * (y - 500); }

/// Samples of this motion on an image of 1400x1000 px, found with errors of 0.2 px.
std::vector<MotionSample> samples(int n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> place(0, 1);
  std::normal_distribution<float> error(0, 0.2F);
  std::vector<MotionSample> all(n);
  for (MotionSample& s : all) {
    s = {1400 * place(random), 1000 * place(random), 0, 0, MotionSample::found};
    s.u = static_cast<float>(true_u(s.x, s.y)) + error(random);
    s.v = static_cast<float>(true_v(s.x, s.y)) + error(random);
  }
  return all;
}

LinearMotion motion_of(const std::vector<MotionSample>& all) {
  return common_motion(all.data(), static_cast<int>(all.size()), kReach);
}

void expect_truth(const LinearMotion& motion) {
  for (const double x : {0, 700, 1400})
    for (const double y : {0, 500, 1000}) {
      EXPECT_NEAR(motion.u_at(x, y), true_u(x, y), 0.4);
      EXPECT_NEAR(motion.v_at(x, y), true_v(x, y), 0.4);
    }
}

bool is_none(const LinearMotion& m) {
  return m.u == 0 && m.ux == 0 && m.uy == 0 && m.v == 0 && m.vx == 0 && m.vy == 0;
}

TEST(CommonMotion, IsThatOfMostSamples) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<MotionSample> all = samples(kMotionSamples, seed);
    for (int k = 0; k < 20; ++k) all[3 * k].state = k < 10 ? MotionSample::none : MotionSample::not_found;
    for (int k = 0; k < 6; ++k) all[3 * k + 1].u -= 9, all[3 * k + 1].v += 7;  // found by chance
    expect_truth(motion_of(all));
  }
}

TEST(CommonMotion, IsNoneWhereBodiesMoveApart) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::vector<MotionSample> all = samples(kMotionSamples, seed);
    for (MotionSample& s : all)
      if (s.x < 560) s.u = s.v = 0;
    EXPECT_TRUE(is_none(motion_of(all))) << seed;
  }
}

TEST(CommonMotion, IsNoneIfFewSamplesWereFound) {
  std::vector<MotionSample> all = samples(kMotionSamples, 1);
  for (int k = 0; k < kMotionSamples / 2; ++k) all[k].state = MotionSample::not_found;
  EXPECT_FALSE(is_none(motion_of(all)));
  all.back().state = MotionSample::not_found;
  EXPECT_TRUE(is_none(motion_of(all)));
  EXPECT_FALSE(is_none(motion_of(samples(8, 1))));
  EXPECT_TRUE(is_none(motion_of(samples(7, 1))));
  EXPECT_TRUE(is_none(motion_of({})));
}

TEST(CommonMotion, IsKnownAlongOneLineOfPoints) {
  std::vector<MotionSample> all = samples(kMotionSamples, 2);
  for (MotionSample& s : all) {
    s.y = 300;
    s.u = static_cast<float>(true_u(s.x, 300)), s.v = static_cast<float>(true_v(s.x, 300));
  }
  const LinearMotion motion = motion_of(all);
  for (const double x : {0, 700, 1400}) {
    EXPECT_NEAR(motion.u_at(x, 300), true_u(x, 300), 0.01);
    EXPECT_NEAR(motion.v_at(x, 302), true_v(x, 300), 0.01);
  }
}

TEST(CommonMotion, AsksPointsAllOverTheList) {
  EXPECT_EQ(sampled_point(0, 1000), 0);
  EXPECT_EQ(sampled_point(kMotionSamples / 2, 1000), 500);
  EXPECT_LT(sampled_point(kMotionSamples - 1, 3000000000), 3000000000);
  EXPECT_GT(sampled_point(kMotionSamples - 1, 1000), 980);
}

}  // namespace
}  // namespace dic::track
