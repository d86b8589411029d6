#include <cmath>
#include <dic/synth.hpp>
#include <dic/track.hpp>
#include <string>

#include "support/gpu_test.hpp"

// Tests options that act before or after the measurement of the subsets, on the GPU against the CPU.
namespace dic {
namespace {

struct Case {
  std::string name;
  TrackOptions options;
  double grey_max = 240;  ///< contrast: grey from 100 to this
};

TrackOptions with(void (*change)(TrackOptions&)) {
  TrackOptions options;
  options.step = 9;
  change(options);
  return options;
}

std::vector<Case> cases() {
  return {
      {"Prefilter", with([](TrackOptions& o) { o.prefilter = 0.7; })},
      {"PrefilterOfWeakContrast", with([](TrackOptions&) {}), 130},
      {"PrefilterWithNoise", with([](TrackOptions& o) {
         o.prefilter = 1;
         o.noise = 2;
       })},
      {"PrefilterOfEveryFrame", with([](TrackOptions& o) {
         o.prefilter = 0.5;
         o.reference_strategy = ReferenceStrategy::previous;
       })},
      {"AntiBias", with([](TrackOptions& o) { o.anti_bias = true; })},
      {"OrderByPoint", with([](TrackOptions& o) { o.automatic_order = true; })},
      {"OrderByPointOfEveryFrame", with([](TrackOptions& o) {
         o.automatic_order = true;
         o.reference_strategy = ReferenceStrategy::previous;
       })},
      {"GaussianWeights", with([](TrackOptions& o) { o.refine.weights = SubsetWeights::gaussian; })},
      {"GaussianWeightsOrderByPoint", with([](TrackOptions& o) {
         o.refine.weights = SubsetWeights::gaussian;
         o.automatic_order = true;
       })},
      {"SigmaTarget", with([](TrackOptions& o) { o.sigma_target = 0.01; })},
  };
}

class ParityOptions : public test::GpuTest, public testing::WithParamInterface<Case> {};

TEST_P(ParityOptions, MeasureAlike) {
  SynthOptions synth;
  synth.size = {420, 380};
  synth.noise = 2;
  synth.grey_min = GetParam().grey_max < 200 ? 100 : 20;
  synth.grey_max = GetParam().grey_max;
  synth.amounts = {0, 0.5, 1};
  synth.motion.kind = MotionKind::ramp;
  synth.motion.amplitude = -2.2;
  synth.motion.length = 90;
  synth.motion.cx = 210;
  const Image reference = synth_frame(synth, 0);
  Field fields[2];
  double noise[2];
  TrackOptions chosen[2];
  for (const int on_gpu : {0, 1}) {
    TrackOptions options = GetParam().options;
    options.device = on_gpu ? "cuda" : "cpu";
    Tracker tracker(options, reference);
    tracker.track(synth_frame(synth, 1));
    FrameResult result = tracker.track(synth_frame(synth, 2));
    fields[on_gpu] = std::move(result.field);
    noise[on_gpu] = result.noise;
    chosen[on_gpu] = tracker.options();
  }
  EXPECT_EQ(chosen[0].prefilter, chosen[1].prefilter);
  EXPECT_EQ(chosen[0].refine.subset, chosen[1].refine.subset);
  EXPECT_NEAR(noise[0], noise[1], 1e-3);
  std::int64_t measured = 0, different = 0;
  for (std::int64_t k = 0; k < fields[0].grid().nodes(); ++k) {
    if (fields[0].status[k] != Status::ok || fields[1].status[k] != Status::ok) {
      different += fields[0].status[k] != fields[1].status[k];
      continue;
    }
    ++measured;
    // If both orders are about equally good, rounding decides.
    if (GetParam().options.automatic_order && std::abs(fields[0].u[k] - fields[1].u[k]) > 1e-3) {
      ++different;
      continue;
    }
    EXPECT_NEAR(fields[0].u[k], fields[1].u[k], 1e-3) << k;
    EXPECT_NEAR(fields[0].v[k], fields[1].v[k], 1e-3) << k;
    EXPECT_NEAR(fields[0].sigma_u[k], fields[1].sigma_u[k], 0.01 * fields[0].sigma_u[k]) << k;
  }
  EXPECT_GT(measured, 1500);
  EXPECT_LE(different, measured / 200);
}
INSTANTIATE_TEST_SUITE_P(Options, ParityOptions, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace dic
