#include "track/focus_match.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <dic/synth.hpp>

#include "support/strain_truth.hpp"
#include "track/field_steps.hpp"

// Tests frames out of focus, and points that are measured twice.
namespace dic::track {
namespace {

SynthOptions defocused(double blur) {
  SynthOptions synth;
  synth.size = {256, 256};
  synth.noise = 2;
  synth.seed = 7;
  synth.blur = blur;
  return synth;
}

/// A field at rest with all points ok.
Field still_field() {
  Field field(std::make_shared<const Grid>(test::full_grid(50, 50, 5)));
  for (std::size_t k = 0; k < field.status.size(); ++k) {
    field.u[k] = field.v[k] = 0;
    field.sigma_u[k] = field.sigma_v[k] = 0.01f;
    field.status[k] = Status::ok;
  }
  return field;
}

TEST(FocusMatch, FindsTheBlurOfEitherImage) {
  for (const double blur : {1.0, 2.0, 3.0}) {
    const Image sharp = synth_frame(defocused(blur), 0), soft = synth_frame(defocused(blur), 1);
    EXPECT_NEAR(blur_between(sharp.view(), soft.view(), still_field(), 33), blur, 0.15);
    EXPECT_NEAR(blur_between(soft.view(), sharp.view(), still_field(), 33), -blur, 0.15);
  }
}

TEST(FocusMatch, FindsNoBlurWhereThereIsNone) {
  const Image a = synth_frame(defocused(0), 0), b = synth_frame(defocused(0), 1);
  EXPECT_EQ(blur_between(a.view(), b.view(), still_field(), 33), 0);
}

TEST(FocusMatch, SharpnessDoesNotDependOnTheLighting) {
  SynthOptions synth = defocused(0);
  synth.gain = 0.45;
  synth.offset = 20;
  const Image bright = synth_frame(synth, 0), dark = synth_frame(synth, 1);
  std::vector<analysis::NoisePatch> places;
  for (int k = 1; k < 12; ++k)
    for (int i = 1; i < 12; ++i) places.push_back({20 * i, 20 * k});
  core::ThreadPool pool(2);
  const auto sharpness_of = [&](const Image& image) { return sharpness(image.view(), places, pool); };
  const double ratio = sharpness_of(dark) / sharpness_of(bright);
  EXPECT_NEAR(ratio, 1, 0.1);
  const Image soft = synth_frame(defocused(2), 1);
  EXPECT_LT(sharpness_of(soft), 0.6 * sharpness_of(bright));
}

TEST(FieldSteps, CountsWhereBothAgreeAndWhereItIsAlone) {
  Field followed = still_field(), direct = still_field();
  direct.u[0] = 0.03, direct.sigma_u[0] = 0.005f;  // both agree
  direct.u[1] = 0.2;                               // they contradict each other
  followed.status[2] = Status::low_correlation;    // only the direct value exists
  direct.u[2] = -0.1;
  followed.u[3] = 0.04, direct.status[3] = Status::flat;  // only the followed value exists
  take_direct(followed, direct);
  EXPECT_EQ(followed.u[0], 0.03);
  EXPECT_EQ(followed.sigma_u[0], 0.005f);
  EXPECT_EQ(followed.u[1], 0);
  EXPECT_EQ(followed.u[2], -0.1);
  EXPECT_EQ(followed.status[2], Status::ok);
  EXPECT_EQ(followed.u[3], 0.04);
}

}  // namespace
}  // namespace dic::track
