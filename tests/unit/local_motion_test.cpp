#include "features/local_motion.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/synth.hpp>
#include <numbers>

namespace dic {
namespace {

SynthOptions speckle(int side, double blob_sigma, const Motion& motion) {
  SynthOptions synth;
  synth.size = {side, side};
  synth.blob_sigma = blob_sigma;
  synth.noise = 2;
  synth.motion = motion;
  synth.motion.cx = synth.motion.cy = 0.5 * (side - 1);
  return synth;
}

Image everywhere(Size size) {
  Image out(size, ScalarType::u8);
  std::fill(out.row<std::uint8_t>(0), out.row<std::uint8_t>(size.height - 1) + size.width, std::uint8_t{1});
  return out;
}

std::vector<features::LocalMotion> found(const SynthOptions& synth,
                                         features::Stretch stretch = features::Stretch::small) {
  return features::MotionFinder(synth_frame(synth, 0), synth_frame(synth, 1))
      .find(everywhere(synth.size), stretch);
}

/// Number of motions that differ from the true one at their position by more than 2 px, or by more than 0.1
/// in the slopes (true slopes by finite differences).
std::int64_t wrong(const std::vector<features::LocalMotion>& motions, const Motion& truth) {
  return std::ranges::count_if(motions, [&](const features::LocalMotion& motion) {
    const auto at = truth.at(motion.x, motion.y, 1);
    const auto right = truth.at(motion.x + 1, motion.y, 1), below = truth.at(motion.x, motion.y + 1, 1);
    const ShapeParameters& s = motion.shape;
    return std::hypot(s.u - at[0], s.v - at[1]) > 2 || std::abs(s.ux - (right[0] - at[0])) > 0.1 ||
           std::abs(s.uy - (below[0] - at[0])) > 0.1 || std::abs(s.vx - (right[1] - at[1])) > 0.1 ||
           std::abs(s.vy - (below[1] - at[1])) > 0.1;
  });
}

/// A rotation after a stretch along x and y.
Motion turned(double degrees, double along_x, double along_y) {
  const double c = std::cos(degrees * std::numbers::pi / 180), s = std::sin(degrees * std::numbers::pi / 180);
  return {.kind = MotionKind::affine,
          .ux = c * along_x - 1,
          .uy = -s * along_y,
          .vx = s * along_x,
          .vy = c * along_y - 1};
}

TEST(LocalMotion, RotationsAndScalesAreFound) {
  for (const double blobs : {1.0, 1.7, 4.0})
    for (const auto& [degrees, scale] : {std::pair{40.0, 1.0}, {90.0, 1.3}, {180.0, 0.8}}) {
      const SynthOptions synth = speckle(400, blobs, turned(degrees, scale, scale));
      const auto motions = found(synth);
      EXPECT_GT(motions.size(), 50) << blobs << " px, " << degrees << " degrees";
      EXPECT_LE(wrong(motions, synth.motion), std::ssize(motions) / 50)
          << blobs << " px, " << degrees << " degrees";
    }
}

TEST(LocalMotion, LargeStretchesAreFoundInViews) {
  const SynthOptions synth = speckle(400, 1.7, turned(120, 2, 0.8));
  const auto motions = found(synth, features::Stretch::large);
  EXPECT_GT(motions.size(), 50);
  EXPECT_LE(wrong(motions, synth.motion), std::ssize(motions) / 20);
}

/// The search reduces the image; positions must not be shifted by that.
TEST(LocalMotion, PositionsAreThoseOfTheFullImage) {
  const SynthOptions synth = speckle(800, 2.5, turned(180, 1, 1));
  double u = 0, v = 0;
  const auto motions = found(synth);
  ASSERT_GT(motions.size(), 100);
  for (const features::LocalMotion& motion : motions) {
    const auto truth = synth.motion.at(motion.x, motion.y, 1);
    u += motion.shape.u - truth[0];
    v += motion.shape.v - truth[1];
  }
  EXPECT_NEAR(u / static_cast<double>(motions.size()), 0, 0.2);
  EXPECT_NEAR(v / static_cast<double>(motions.size()), 0, 0.2);
}

TEST(LocalMotion, BodiesHaveMotionsOfTheirOwn) {
  SynthOptions synth = speckle(600, 1.7, {.kind = MotionKind::bodies});
  synth.motion.bodies = {{.x = 200, .y = 250, .radius = 110, .u = 120, .v = 60, .angle_deg = 50}};
  const auto motions = found(synth);
  std::int64_t on_disc = 0, wrong_place = 0;
  for (const features::LocalMotion& motion : motions) {
    const bool disc = synth.motion.body(motion.x, motion.y) == 1;
    const auto truth = synth.motion.at(motion.x, motion.y, 1);
    on_disc += disc;
    // Near the edge, neighbours of a feature may be on the other side.
    wrong_place += std::hypot(motion.shape.u - truth[0], motion.shape.v - truth[1]) > 3;
  }
  EXPECT_GT(on_disc, 50);
  EXPECT_GT(std::ssize(motions) - on_disc, 200);
  EXPECT_LE(wrong_place, std::ssize(motions) / 50);
}

TEST(LocalMotion, NothingIsFoundWhereNothingIs) {
  SynthOptions synth = speckle(500, 1.7, {});
  synth.unrelated = true;
  EXPECT_LE(found(synth).size(), 2);
  EXPECT_LE(found(synth, features::Stretch::large).size(), 4);
  const Image black({200, 300}, ScalarType::u16);
  EXPECT_TRUE(
      features::MotionFinder(black, black).find(everywhere(black.size()), features::Stretch::small).empty());
  SynthOptions lattice = speckle(500, 2, {.u = 30});
  lattice.texture = Texture::lattice;
  EXPECT_EQ(wrong(found(lattice), lattice.motion), 0) << "of a texture where many motions look right";
}

TEST(LocalMotion, AFinderAnswersEveryQuestionAsANewOneDoes) {
  const SynthOptions synth = speckle(200, 1.7, turned(20, 1, 1));
  const Image reference = synth_frame(synth, 0), current = synth_frame(synth, 1),
              all = everywhere(synth.size), none(synth.size, ScalarType::u8);
  features::MotionFinder finder(reference, current);
  EXPECT_TRUE(finder.find(none, features::Stretch::small).empty());
  for (const auto stretch : {features::Stretch::small, features::Stretch::large}) {
    const auto again = finder.find(all, stretch),
               anew = features::MotionFinder(reference, current).find(all, stretch);
    ASSERT_EQ(again.size(), anew.size());
    EXPECT_GT(again.size(), 20);
    for (std::size_t k = 0; k < again.size(); ++k) {
      EXPECT_EQ(again[k].x, anew[k].x);
      EXPECT_EQ(again[k].shape.u, anew[k].shape.u);
      EXPECT_EQ(again[k].shape.vy, anew[k].shape.vy);
    }
  }
}

TEST(LocalMotion, OnlyWantedFeaturesAreLookedFor) {
  const SynthOptions synth = speckle(400, 1.7, turned(60, 1, 1));
  Image wanted(synth.size, ScalarType::u8);
  for (int y = 150; y < 250; ++y) std::fill_n(wanted.row<std::uint8_t>(y) + 200, 100, std::uint8_t{255});
  const auto motions = features::MotionFinder(synth_frame(synth, 0), synth_frame(synth, 1))
                           .find(wanted, features::Stretch::small);
  EXPECT_GT(motions.size(), 20);
  for (const features::LocalMotion& motion : motions) {
    EXPECT_TRUE(motion.x >= 198 && motion.x < 302 && motion.y >= 148 && motion.y < 252);
  }
}

}  // namespace
}  // namespace dic
