#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/shared/saturation.hpp>
#include <dic/synth.hpp>
#include <dic/track.hpp>
#include <vector>

// Tests the effect of saturated pixels on a subset, and measurements beside a glare and on white paint.
namespace dic::test {
namespace {

using icgn::SaturationCounts;
using icgn::SaturationRule;

const auto kNothingWhite = [](int, int, int) { return false; };

TEST(Saturation, PixelsThatShowNothingAreLeftOut) {
  const auto rule = [](SaturationCounts pixels, bool is_part = false) {
    return icgn::saturation_rule(pixels, is_part, 16, kNothingWhite);
  };
  EXPECT_EQ(rule({1089, 0, 0}), SaturationRule::keep);
  EXPECT_EQ(rule({1089, 20, 20}), SaturationRule::keep);  // few saturated pixels
  EXPECT_EQ(rule({1089, 200, 0}), SaturationRule::without_any);
  EXPECT_EQ(rule({1089, 700, 10}), SaturationRule::keep);  // white paint
  EXPECT_EQ(rule({1089, 700, 100}), SaturationRule::without_differences);
  EXPECT_EQ(rule({1089, 1000, 700}), SaturationRule::give_up);
  EXPECT_TRUE(icgn::is_left_out({true, true}, SaturationRule::without_any));
  EXPECT_FALSE(icgn::is_left_out({true, true}, SaturationRule::without_differences));
  EXPECT_TRUE(icgn::is_left_out({false, true}, SaturationRule::without_differences));
}

TEST(Saturation, WhatIsWhiteItselfIsNotMeasuredByWhatLiesBeside) {
  const auto right_half = [](int x, int, int reach) { return x - reach >= -4; };
  const SaturationCounts part{500, 240, 0}, most{1089, 600, 0};
  EXPECT_EQ(icgn::saturation_rule(part, true, 16, right_half), SaturationRule::give_up);
  EXPECT_EQ(icgn::saturation_rule(part, true, 16, kNothingWhite), SaturationRule::without_any);
  EXPECT_EQ(icgn::saturation_rule(most, false, 16, right_half), SaturationRule::give_up);
}

TEST(Saturation, AGlareCountsAsFarAsASubset) {
  const auto beside = [](int distance) {
    return icgn::is_beside_glare(16, [&](int x, int, int) { return x >= distance; });
  };
  EXPECT_TRUE(beside(32));
  EXPECT_FALSE(beside(33));
  EXPECT_EQ(icgn::glare_reach(16), 32 + icgn::white_reach(16));
}

/// Measurement of the second of two images with a known translation.
struct Measured {
  std::int64_t points = 0, ok = 0, wrong = 0;
  double scatter = 0;
};
Measured measured(const Image& reference, const Image& current, double u, double v) {
  TrackOptions options;
  options.step = 5;
  options.device = "cpu";
  Tracker tracker(options, reference);
  const Field field = tracker.track(current).field;
  Measured out;
  for (std::size_t k = 0; k < field.status.size(); ++k) {
    ++out.points;
    if (field.status[k] != Status::ok) continue;
    ++out.ok;
    const double du = (field.u[k] - u) / field.sigma_u[k], dv = (field.v[k] - v) / field.sigma_v[k];
    out.wrong += std::max(std::abs(du), std::abs(dv)) > 5;
    out.scatter += (du * du + dv * dv) / 2;
  }
  out.scatter = std::sqrt(out.scatter / static_cast<double>(out.ok));
  return out;
}

SynthOptions speckle() {
  SynthOptions synth;
  synth.size = {300, 300};
  synth.noise = 2;
  synth.seed = 7;
  synth.motion.u = 2.3;
  synth.motion.v = 0.2;
  return synth;
}

TEST(Saturation, BesideAGlareSigmaIsRight) {
  SynthOptions synth = speckle();
  synth.glare = 0.1;
  const Measured m = measured(synth_frame(synth, 0), synth_frame(synth, 1), 2.3, 0.2);
  EXPECT_GT(m.ok, 0.8 * static_cast<double>(m.points));
  EXPECT_EQ(m.wrong, 0);
  EXPECT_LT(m.scatter, 1.25);
}

/// Dark dots on overexposed white paint: pixels lighter than `white` are saturated.
std::vector<Image> painted(int white) {
  const SynthOptions synth = speckle();
  std::vector<Image> frames;
  for (int k = 0; k < 2; ++k) {
    frames.push_back(synth_frame(synth, k));
    for (int y = 0; y < synth.size.height; ++y)
      for (int x = 0; x < synth.size.width; ++x) {
        std::uint8_t& grey = frames[k].row<std::uint8_t>(y)[x];
        grey = static_cast<std::uint8_t>(std::clamp(255 + 4 * (grey - white), 0, 255));
      }
  }
  return frames;
}

TEST(Saturation, OverexposedPaintIsMeasured) {
  // 0.4 and 0.6 of all pixels are saturated
  const std::vector<Image> some = painted(140), most = painted(120);
  const Measured m = measured(some[0], some[1], 2.3, 0.2);
  EXPECT_GT(m.ok, 0.99 * static_cast<double>(m.points));
  EXPECT_EQ(m.wrong, 0);
  EXPECT_LT(m.scatter, 1.25);
  EXPECT_GT(measured(most[0], most[1], 2.3, 0.2).ok, 0.98 * static_cast<double>(m.points));
}

}  // namespace
}  // namespace dic::test
