#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/synth.hpp>
#include <dic/track.hpp>
#include <initializer_list>
#include <string>

#include "accuracy/accuracy_support.hpp"

// Tests options that act before or after the measurement of the subsets, on synthetic images of known motion.
namespace dic {
namespace {

using namespace test;

SynthOptions shifted(double u, double v, double noise) {
  SynthOptions options;
  options.size = {512, 512};
  options.noise = noise;
  options.seed = 90210;
  options.motion.u = u;
  options.motion.v = v;
  return options;
}

struct Outcome {
  TrackOptions chosen;
  Errors errors;
};
Outcome run(const SynthOptions& synth, const TrackOptions& options) {
  const Image reference = synth_frame(synth, 0);
  Tracker tracker(options, reference);
  const Field field = tracker.track(synth_frame(synth, 1)).field;
  const Scene scene{tracker.grid(), synth.size.width, synth.size.height};
  return {tracker.options(), interior_errors(scene, field, [&](double x, double y) {
            const auto [u, v] = synth.motion.at(x, y, 1);
            return Displacement{u, v};
          })};
}

TEST(PrefilterOption, LowersTheErrorOfWeakContrast) {
  SynthOptions synth = shifted(0.3, 0.2, 2);
  synth.grey_min = 100;
  synth.grey_max = 130;
  TrackOptions none = track_options(33, 1, 8), automatic = none, pixel = none;
  none.prefilter = 0;
  pixel.prefilter = 1;
  const Outcome without = run(synth, none), with = run(synth, automatic), of_a_pixel = run(synth, pixel);
  EXPECT_GT(with.chosen.prefilter, 0.4);
  EXPECT_EQ(with.errors.ok, with.errors.points);
  EXPECT_LT(with.errors.u.rms(), 0.8 * without.errors.u.rms());
  EXPECT_LT(with.errors.u.rms(), 1.02 * of_a_pixel.errors.u.rms());
}

TEST(PrefilterOption, IsNotChosenForGoodSpeckle) {
  for (const double blob : {1.0, 1.7, 3.5}) {
    SynthOptions synth = shifted(0.3, 0.2, 2);
    synth.blob_sigma = blob;
    const TrackOptions options = track_options(33, 1, 16);
    EXPECT_EQ(Tracker(options, synth_frame(synth, 0)).options().prefilter, 0) << blob;
  }
}

TEST(PrefilterOption, LeavesSigmaAndNoiseThoseOfTheImages) {
  const SynthOptions synth = shifted(0.3, 0.2, 2);
  TrackOptions options = track_options(33, 1, 8);
  options.prefilter = 0.7;
  const Image reference = synth_frame(synth, 0);
  Tracker tracker(options, reference);
  EXPECT_NEAR(tracker.track(synth_frame(synth, 1)).noise, 2, 0.1);
  for (const double sigma : {0.5, 1.0, 1.4}) {
    options.prefilter = sigma;
    const Errors errors = run(synth, options).errors;
    EXPECT_GT(errors.ratio_u.rms(), 0.93) << sigma;
    EXPECT_LT(errors.ratio_u.rms(), 1.12) << sigma;
  }
}

TEST(Defocus, OfTheCurrentFrameIsMadeUpForInTheReference) {
  for (const double blur : {2.0, 3.0}) {
    SynthOptions synth = shifted(0.3, 0.2, 2);
    synth.blur = blur;
    const Errors errors = run(synth, track_options(33, 1, 8)).errors;
    EXPECT_EQ(errors.ok, errors.points) << blur;
    EXPECT_LT(errors.u.rms(), 0.012 * blur) << blur;  // 0.07 and 0.2 px without the option
    EXPECT_NEAR(errors.ratio_u.rms(), 1, 0.12) << blur;
  }
}

TEST(AntiBiasOption, TakesMostOfTheBiasAwayAndAddsNoNoise) {
  SynthOptions synth = shifted(0.25, 0.1, 0);
  synth.blob_sigma = 1;
  for (const Interpolation interpolation : {Interpolation::cubic, Interpolation::quintic}) {
    TrackOptions plain = track_options(33, 1, 8);
    plain.refine.interpolation = interpolation;
    TrackOptions corrected = plain;
    corrected.anti_bias = true;
    const Errors before = run(synth, plain).errors, after = run(synth, corrected).errors;
    EXPECT_GT(before.u.mean(), interpolation == Interpolation::cubic ? 30e-4 : 7e-4);
    EXPECT_LT(std::abs(after.u.mean()), 0.2 * before.u.mean());
    EXPECT_LT(after.u.sd(), 1.01 * before.u.sd());
  }
}

TEST(AntiBiasOption, KnowsTheDeformationOfTheSubset) {
  SynthOptions synth = shifted(0, 0, 0);
  synth.blob_sigma = 1;
  synth.motion.kind = MotionKind::affine;
  synth.motion.ux = 0.01;
  synth.motion.cx = 0;
  TrackOptions plain = track_options(33, 1, 8);
  TrackOptions corrected = plain;
  corrected.anti_bias = true;
  const Errors before = run(synth, plain).errors, after = run(synth, corrected).errors;
  EXPECT_LT(after.u.rms(), 0.6 * before.u.rms());
  EXPECT_LT(std::abs(after.exx.mean() - 0.01005), 1e-5);
}

Field field_of(const TrackOptions& options, const Image& reference, const Image& current) {
  return Tracker(options, reference).track(current).field;
}

/// Root mean square of the distance from the true displacement, over the points that all fields measured:
/// each way of measuring gives up its own most uncertain points.
double rmse(const Field& field, std::initializer_list<const Field*> all, const SynthOptions& synth) {
  const Grid& grid = field.grid();
  Moments errors;
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::int64_t node = std::int64_t{j} * grid.nx + i;
      if (!std::ranges::all_of(all, [&](const Field* other) { return other->status[node] == Status::ok; }))
        continue;
      const auto [u, v] = synth.motion.at(grid.x(i), grid.y(j), 1);
      errors.add(std::hypot(field.u[node] - u, field.v[node] - v));
    }
  return errors.rms();
}

class AutomaticOrder : public testing::TestWithParam<MotionKind> {};

TEST_P(AutomaticOrder, IsAsGoodAsTheBetterOfBoth) {
  SynthOptions synth = shifted(0.3, 0.2, 2);
  synth.size = {400, 240};
  synth.motion.kind = GetParam();
  synth.motion.cx = 199.5;
  synth.motion.cy = 119.5;
  synth.motion.width = 400;
  synth.motion.period_min = 30;
  synth.motion.period_max = 200;
  synth.motion.amplitude = GetParam() == MotionKind::ramp ? -3.2 : 0.3;
  synth.motion.length = 100;
  const Image reference = synth_frame(synth, 0), current = synth_frame(synth, 1);
  TrackOptions automatic = track_options(33, 1, 6);
  automatic.automatic_order = true;
  const Field first = field_of(track_options(33, 1, 6), reference, current),
              second = field_of(track_options(33, 2, 6), reference, current),
              chosen = field_of(automatic, reference, current);
  const auto rmse_of = [&](const Field& field) { return rmse(field, {&first, &second, &chosen}, synth); };
  EXPECT_LT(rmse_of(chosen), 1.02 * std::min(rmse_of(first), rmse_of(second)));
  const auto measured = [](const Field& field) { return field.counts()[static_cast<int>(Status::ok)]; };
  EXPECT_GE(measured(chosen), 99 * std::max(measured(first), measured(second)) / 100);
}
INSTANTIATE_TEST_SUITE_P(Motions, AutomaticOrder,
                         testing::Values(MotionKind::translation, MotionKind::star, MotionKind::chirp,
                                         MotionKind::ramp),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST(AutomaticOrderOption, FollowsASequenceWithAnyStrategy) {
  SynthOptions synth = shifted(2.4, -1.2, 1);
  synth.size = {256, 256};
  synth.amounts = {0, 0.5, 1};
  const Image reference = synth_frame(synth, 0);
  for (const ReferenceStrategy strategy :
       {ReferenceStrategy::first, ReferenceStrategy::previous, ReferenceStrategy::automatic}) {
    TrackOptions options = track_options(21, 1, 12);
    options.automatic_order = true;
    options.reference_strategy = strategy;
    Tracker tracker(options, reference);
    tracker.track(synth_frame(synth, 1));
    const Field field = tracker.track(synth_frame(synth, 2)).field;
    const Scene scene{tracker.grid(), 256, 256};
    const Errors errors = interior_errors(scene, field, [](double, double) {
      return Displacement{2.4, -1.2};
    });
    EXPECT_EQ(errors.ok, errors.points) << to_string(strategy);
    EXPECT_LT(std::abs(errors.u.mean()), 2e-3) << to_string(strategy);
  }
}

TEST(SigmaTargetOption, ChoosesTheSmallestSubsetThatReachesIt) {
  const SynthOptions synth = shifted(0.3, 0.2, 2);
  TrackOptions options = track_options(33, 1, 8);
  for (const double target : {0.02, 0.01, 0.006}) {
    options.sigma_target = target;
    const Outcome outcome = run(synth, options);
    const int subset = outcome.chosen.refine.subset;
    EXPECT_EQ(subset % 2, 1);
    EXPECT_GT(outcome.errors.u.sd(), 0.7 * target) << subset;
    EXPECT_LT(outcome.errors.u.sd(), 1.05 * target) << subset;
  }
  options.sigma_target = 1e-5;
  EXPECT_EQ(Tracker(options, synth_frame(synth, 0)).options().refine.subset, 101);
  options.sigma_target = 0.5;
  EXPECT_EQ(Tracker(options, synth_frame(synth, 0)).options().refine.subset, 11);
}

TEST(SigmaTargetOption, KnowsWeakContrastAndThePrefilter) {
  SynthOptions synth = shifted(0.3, 0.2, 2);
  synth.grey_min = 100;
  synth.grey_max = 130;
  TrackOptions options = track_options(33, 1, 8);
  options.sigma_target = 0.05;
  const Outcome outcome = run(synth, options);
  EXPECT_GT(outcome.chosen.refine.subset, 33);
  EXPECT_GT(outcome.errors.u.sd(), 0.65 * 0.05);
  EXPECT_LT(outcome.errors.u.sd(), 1.1 * 0.05);
}

/// Share that remains of a wave along x of 0.5 px amplitude, without noise.
double response(const TrackOptions& options, double period) {
  SynthOptions synth = shifted(0, 0, 0);
  synth.motion.kind = MotionKind::chirp;
  synth.motion.period_min = synth.motion.period_max = period;
  synth.motion.width = synth.size.width;
  const Image reference = synth_frame(synth, 0);
  const Measured m = track_pair(options, reference, synth_frame(synth, 1));
  double measured = 0, truth = 0;
  each_node(
      m.scene, [&](int i, int j) { return m.scene.interior(i, j); },
      [&](int i, int j, std::int64_t n) {
        const double u = synth.motion.at(m.scene.grid.x(i), m.scene.grid.y(j), 1)[0];
        measured += u * m.field.u[n];
        truth += u * u;
      });
  return measured / truth;
}

TEST(WeightsOption, GaussianWindowResolvesFinerAtTheSameNoise) {
  // The mean square distance of a pixel along an axis is 0.0484 of the squared side. A uniform subset of four
  // fifths of the side has the same noise, but damps a wave more.
  TrackOptions gaussian = track_options(41, 1, 8);
  gaussian.refine.weights = SubsetWeights::gaussian;
  const TrackOptions small = track_options(33, 1, 8);
  const SynthOptions still = shifted(0.3, 0.2, 2);
  const double noise = run(still, gaussian).errors.u.sd() / run(still, small).errors.u.sd();
  EXPECT_NEAR(noise, 1, 0.06);
  const double of_gaussian = response(gaussian, 120), of_small = response(small, 120);
  EXPECT_NEAR(of_gaussian, std::exp(-2 * std::pow(M_PI / 120, 2) * 0.0484 * 41 * 41), 0.01);
  EXPECT_LT(1 - of_gaussian, 0.94 * (1 - of_small));
}

TEST(WeightsOption, SigmaOfAGaussianWindowIsTheScatter) {
  for (const int order : {0, 1, 2}) {
    TrackOptions options = track_options(33, order, 8);
    options.refine.weights = SubsetWeights::gaussian;
    Moments ratio;
    for (const std::uint64_t seed : {1, 2}) {
      SynthOptions synth = shifted(0.3, 0.2, 2);
      synth.seed = seed;
      const Outcome outcome = run(synth, options);
      EXPECT_EQ(outcome.errors.ok, outcome.errors.points);
      for (const Moments& of : {outcome.errors.ratio_u, outcome.errors.ratio_v})
        ratio.n += of.n, ratio.square += of.square;
    }
    EXPECT_NEAR(ratio.rms(), 1, 0.1) << order;
  }
}

}  // namespace
}  // namespace dic
