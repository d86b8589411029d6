#include <gtest/gtest.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/synth.hpp>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <random>
#include <set>

#include "synth/motion.hpp"
#include "synth/random.hpp"
#include "synth/speckle.hpp"

namespace dic {
using namespace synth;
namespace {

namespace fs = std::filesystem;

SynthOptions small_options() {
  SynthOptions options;
  options.size = {96, 80};
  return options;
}

Motion motion_of(MotionKind kind) {
  Motion motion;
  motion.kind = kind;
  motion.u = 3.3;
  motion.v = -1.7;
  motion.ux = 0.02, motion.uy = -0.3, motion.vx = 0.1, motion.vy = -0.4;
  motion.angle_deg = kind == MotionKind::crack ? 0 : 170;
  motion.cx = 40, motion.cy = 33;
  const bool periodic = kind == MotionKind::star || kind == MotionKind::chirp;
  motion.amplitude = periodic ? 0.9 : 4.2;
  motion.period_min = 8, motion.period_max = 60;
  motion.width = 96;
  motion.crack_y = 39.5;
  motion.slip = 2.5;
  motion.length = 20;
  motion.radius = 10;
  if (kind == MotionKind::hole) motion.vy = 0.12;
  motion.bodies = {{30, 30, 15, 4, -3, 50}, {60, 50, 12, -8, 6, -20}};
  return motion;
}

constexpr MotionKind kKinds[] = {MotionKind::translation, MotionKind::affine, MotionKind::rotation,
                                 MotionKind::star,        MotionKind::chirp,  MotionKind::ramp,
                                 MotionKind::crack,       MotionKind::hole,   MotionKind::bodies};

int grey(const Image& image, int x, int y) {
  return image.type() == ScalarType::u8 ? image.row<std::uint8_t>(y)[x] : image.row<std::uint16_t>(y)[x];
}

/// Mean and standard deviation of a - b.
std::pair<double, double> difference(const Image& a, const Image& b) {
  double sum = 0, squares = 0;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x) {
      const double d = grey(a, x, y) - grey(b, x, y);
      sum += d;
      squares += d * d;
    }
  const double n = static_cast<double>(a.width()) * a.height(), mean = sum / n;
  return {mean, std::sqrt(squares / n - mean * mean)};
}

TEST(Motion, ReferencePositionUndoesTheDisplacement) {
  std::mt19937 random(1);
  for (const MotionKind kind : kKinds)
    for (const double amount : {0.0, 0.5, 1.0})
      for (int i = 0; i < 1000; ++i) {
        const Motion motion = motion_of(kind);
        const double x = static_cast<double>(random() % 9500) / 100,
                     y = static_cast<double>(random() % 8000) / 100;
        if (!motion.visible(x, y, amount)) continue;
        const auto [u, v] = motion.at(x, y, amount);
        const auto back = reference_position(motion, amount, x + u, y + v);
        ASSERT_TRUE(back);
        ASSERT_NEAR(back->x, x, 1e-11) << to_string(kind);
        ASSERT_NEAR(back->y, y, 1e-11) << to_string(kind);
        ASSERT_EQ(back->body, motion.body(x, y));
      }
}

TEST(Motion, HasTheDocumentedSigns) {
  Motion motion;
  motion.kind = MotionKind::rotation;
  motion.angle_deg = 90;  // from the x axis to the y axis: points right of the centre end up below it
  motion.cx = motion.cy = 10;
  const auto rotated = motion.at(15, 10, 1);
  EXPECT_NEAR(15 + rotated[0], 10, 1e-12);
  EXPECT_NEAR(10 + rotated[1], 15, 1e-12);

  motion = motion_of(MotionKind::affine);
  const auto [u, v] = motion.at(motion.cx + 2, motion.cy + 5, 0.5);
  EXPECT_NEAR(u, 0.5 * (3.3 + 0.02 * 2 - 0.3 * 5), 1e-12);
  EXPECT_NEAR(v, 0.5 * (-1.7 + 0.1 * 2 - 0.4 * 5), 1e-12);

  motion = motion_of(MotionKind::crack);
  EXPECT_EQ(motion.at(5, 39, 1)[1], -4.2);
  EXPECT_EQ(motion.at(5, 40, 1)[1], 4.2);
}

TEST(Motion, CracksMayBeOblique) {
  Motion motion;
  motion.kind = MotionKind::crack;
  motion.cx = motion.crack_y = 50;
  motion.angle_deg = 30;  // the crack descends to the right
  motion.amplitude = 3;
  const auto below = motion.at(50, 60, 1), above = motion.at(50, 40, 1);
  EXPECT_NEAR(below[0], -1.5, 1e-12);
  EXPECT_NEAR(below[1], 3 * std::sqrt(0.75), 1e-12);
  EXPECT_NEAR(above[0], 1.5, 1e-12);
  EXPECT_EQ(motion.body(80, 60), 0) << "the crack is at y = 67 there";
  EXPECT_EQ(motion.body(80, 70), 1);
  motion.amplitude = 0;
  motion.slip = 2;
  EXPECT_NEAR(motion.at(80, 70, 1)[0], 2 * std::sqrt(0.75), 1e-12);
  EXPECT_NEAR(motion.at(80, 70, 1)[1], 1, 1e-12);
}

/// Strain at a point by differences of the displacement: {exx, eyy, exy}.
std::array<double, 3> strain_at(const Motion& motion, double x, double y) {
  constexpr double h = 1e-4;
  const auto e = motion.at(x + h, y, 1), w = motion.at(x - h, y, 1), s = motion.at(x, y + h, 1),
             n = motion.at(x, y - h, 1);
  return {(e[0] - w[0]) / (2 * h), (s[1] - n[1]) / (2 * h), (s[0] - n[0] + e[1] - w[1]) / (4 * h)};
}

TEST(Motion, PlateWithAHoleIsInEquilibrium) {
  Motion motion;
  motion.kind = MotionKind::hole;
  motion.cx = motion.cy = 0;
  motion.radius = 20;
  motion.vy = 0.01;
  EXPECT_NEAR(strain_at(motion, 20.001, 0)[1], 0.03, 1e-5) << "three times the strain far away";
  EXPECT_NEAR(strain_at(motion, 0, 20.001)[0], -0.01, 1e-5) << "the known stress -S at the top of the hole";
  EXPECT_NEAR(strain_at(motion, 1e4, 1e4)[1], 0.01, 1e-6);
  EXPECT_NEAR(strain_at(motion, 1e4, 1e4)[0], -0.003, 1e-6);
  // Stress divided by Young's modulus, plane stress; its divergence vanishes, and so does the traction on the
  // hole.
  const auto stress = [&](double x, double y) {
    const auto [xx, yy, xy] = strain_at(motion, x, y);
    return std::array{(xx + 0.3 * yy) / 0.91, (yy + 0.3 * xx) / 0.91, xy / 1.3};
  };
  for (const auto& [x, y] : {std::pair{25.0, 7.0}, std::pair{-14.0, 22.0}, std::pair{30.0, -30.0}}) {
    constexpr double h = 0.05;
    const auto e = stress(x + h, y), w = stress(x - h, y), s = stress(x, y + h), n = stress(x, y - h);
    EXPECT_NEAR((e[0] - w[0] + s[2] - n[2]) / (2 * h), 0, 1e-7);
    EXPECT_NEAR((e[2] - w[2] + s[1] - n[1]) / (2 * h), 0, 1e-7);
  }
  for (const double angle : {0.1, 0.9, 2.0, 4.5}) {
    const double c = std::cos(angle), s = std::sin(angle);
    const auto [xx, yy, xy] = stress(20.001 * c, 20.001 * s);
    EXPECT_NEAR(xx * c + xy * s, 0, 1e-5);
    EXPECT_NEAR(xy * c + yy * s, 0, 1e-5);
  }
}

TEST(Motion, StarRisesInFrequencyFromLeftToRight) {
  const Motion motion = motion_of(MotionKind::star);
  for (const auto& [x, period] : {std::pair{0.0, 60.0}, std::pair{95.0, 8.0}, std::pair{47.5, 34.0}}) {
    EXPECT_NEAR(motion.at(x, motion.cy, 1)[1], motion.amplitude, 1e-12);
    EXPECT_NEAR(motion.at(x, motion.cy + period / 2, 1)[1], -motion.amplitude, 1e-12);
    EXPECT_NEAR(motion.at(x, motion.cy + period, 1)[1], motion.amplitude, 1e-12);
  }
}

TEST(Motion, BodiesHideWhatIsBehindThem) {
  Motion motion;
  motion.kind = MotionKind::bodies;
  motion.bodies = {{20, 20, 10, 30, 0, 0}};
  EXPECT_EQ(motion.body(25, 20), 1);
  EXPECT_EQ(motion.body(35, 20), 0);
  EXPECT_EQ(motion.at(25, 20, 0.5), (std::array{15.0, 0.0}));
  EXPECT_TRUE(motion.visible(25, 20, 1));
  EXPECT_FALSE(motion.visible(45, 20, 1)) << "the body arrives there";
  EXPECT_TRUE(motion.visible(65, 20, 1));
}

TEST(Motion, ChirpAndRampAreWhatTheySay) {
  Motion motion = motion_of(MotionKind::ramp);
  EXPECT_EQ(motion.at(motion.cx - 11, 5, 1)[0], 0);
  EXPECT_EQ(motion.at(motion.cx + 11, 5, 1)[0], 4.2);
  EXPECT_NEAR(motion.at(motion.cx + 5, 5, 0.5)[0], 2.1 * 0.75, 1e-12);
  motion = motion_of(MotionKind::chirp);
  int crossings = 0;  // expected: one per half period, the sum of dx / (period / 2)
  double expected = 0, before = motion.at(0.01, 0, 1)[0];
  for (double x = 0.02; x < 95; x += 0.01) {
    const double now = motion.at(x, 0, 1)[0];
    crossings += (now > 0) != (before > 0);
    before = now;
    expected += 0.02 / (60 - 52 * x / 95);
  }
  EXPECT_NEAR(crossings, expected, 1);
}

TEST(Random, PoissonHasItsMeanAndVariance) {
  for (const double mean : {0.5, 12.0, 59.0, 400.0}) {
    constexpr int kDraws = 100000;
    double sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const double n = poisson(3, i, mean);
      EXPECT_EQ(n, std::floor(n));
      sum += n;
      squares += n * n;
    }
    const double found = sum / kDraws;
    EXPECT_NEAR(found, mean, 5 * std::sqrt(mean / kDraws));
    EXPECT_NEAR(squares / kDraws - found * found, mean, 5 * mean * std::sqrt(3.0 / kDraws) + 0.3);
  }
}

TEST(Random, IsNormalAndUncorrelated) {
  constexpr int kPairs = 200000;
  double sum = 0, squares = 0, fourth = 0, product = 0, serial = 0, previous = 0;
  for (std::uint64_t i = 0; i < kPairs; ++i) {
    const auto [a, b] = normal_pair(7, i);
    sum += a + b;
    squares += a * a + b * b;
    fourth += a * a * a * a + b * b * b * b;
    product += a * b;
    serial += a * previous;
    previous = a;
  }
  const double n = 2.0 * kPairs;
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96 / n));
  EXPECT_NEAR(product / kPairs, 0, 5 / std::sqrt(kPairs));
  EXPECT_NEAR(serial / kPairs, 0, 5 / std::sqrt(kPairs));
}

/// Sums all blobs in a large neighbourhood without a cutoff, independently of Speckle::at.
double naive_sum(const SpeckleSettings& s, double x, double y) {
  const auto column = static_cast<std::int64_t>(std::floor(x / s.cell)),
             row = static_cast<std::int64_t>(std::floor(y / s.cell));
  double sum = 0;
  for (std::int64_t j = row - 12; j <= row + 12; ++j)
    for (std::int64_t i = column - 12; i <= column + 12; ++i) {
      const Blob blob = blob_of(s, i, j);
      sum += blob.sign *
             std::exp(-(std::pow(x - blob.x, 2) + std::pow(y - blob.y, 2)) / (2 * s.sigma * s.sigma));
    }
  return sum;
}

TEST(Speckle, SumsEveryBlobThatMatters) {
  const SpeckleSettings settings{1.7, 3.1, 5};
  const Speckle speckle(settings, {-20, 30, -10, 40});
  for (double x = -20; x <= 30; x += 3.7)
    for (double y = -10; y <= 40; y += 4.3) EXPECT_NEAR(speckle.at(x, y), naive_sum(settings, x, y), 1e-6);
}

TEST(Speckle, BlobsLieInTheirCellsWithBothSigns) {
  const SpeckleSettings settings{1, 4, 9};
  int bright = 0;
  double x_sum = 0;
  for (int row = -50; row < 50; ++row)
    for (int column = -50; column < 50; ++column) {
      const Blob blob = blob_of(settings, column, row);
      EXPECT_EQ(std::floor(blob.x / 4), column);
      EXPECT_EQ(std::floor(blob.y / 4), row);
      bright += blob.sign > 0;
      x_sum += blob.x / 4 - column;
    }
  EXPECT_NEAR(bright, 5000, 250);
  EXPECT_NEAR(x_sum / 10000, 0.5, 0.015);
}

TEST(SynthFrame, IsTheBlobSumAtTheReferencePosition) {
  for (const MotionKind kind : kKinds) {
    SynthOptions options = small_options();
    options.bits = 16;
    options.motion = motion_of(kind);
    options.motion.bodies.clear();
    const SpeckleSettings settings{options.blob_sigma, 2 * options.blob_sigma, options.seed};
    double low = 1e9, high = -1e9;
    for (int y = 0; y < options.size.height; ++y)
      for (int x = 0; x < options.size.width; ++x) {
        if (!reference_position(options.motion, 0, x, y)) continue;  // the hole has no blobs
        const double sum = naive_sum(settings, x, y);
        low = std::min(low, sum);
        high = std::max(high, sum);
      }
    const Image image = synth_frame(options, 1);
    for (const auto& [x, y] : {std::pair{3, 5}, std::pair{50, 20}, std::pair{90, 75}, std::pair{11, 60}}) {
      const auto p = reference_position(options.motion, 1, x, y);
      ASSERT_TRUE(p);
      const double level = 20 + 220 * (naive_sum(settings, p->x, p->y) - low) / (high - low);
      EXPECT_NEAR(grey(image, x, y), 257 * level, 0.51) << to_string(kind) << " at " << x << ", " << y;
    }
  }
}

TEST(SynthFrame, UsesTheWholeGreyRangeInBothDepths) {
  SynthOptions options = small_options();
  const Image image8 = synth_frame(options, 0);
  options.bits = 16;
  const Image image16 = synth_frame(options, 0);
  ASSERT_EQ(image8.type(), ScalarType::u8);
  ASSERT_EQ(image16.type(), ScalarType::u16);
  int low = 65535, high = 0;
  std::set<int> values;
  for (int y = 0; y < options.size.height; ++y)
    for (int x = 0; x < options.size.width; ++x) {
      EXPECT_NEAR(grey(image16, x, y) / 257.0, grey(image8, x, y), 0.51);
      low = std::min(low, grey(image16, x, y));
      high = std::max(high, grey(image16, x, y));
      values.insert(grey(image16, x, y));
    }
  EXPECT_EQ(low, 20 * 257);
  EXPECT_EQ(high, 240 * 257);
  EXPECT_GT(values.size(), 3000u) << "16 bits are not 8 bits scaled";
}

TEST(SynthFrame, MovesByWholePixelsExactly) {
  SynthOptions options = small_options();
  options.motion.u = 5;
  options.motion.v = -3;
  const Image reference = synth_frame(options, 0), current = synth_frame(options, 1);
  for (int y = 3; y < options.size.height; ++y)
    for (int x = 0; x < options.size.width - 5; ++x)
      ASSERT_EQ(grey(current, x + 5, y - 3), grey(reference, x, y));
}

TEST(SynthFrame, TurnsAndStretchesExactly) {
  SynthOptions options = small_options();
  options.size = {81, 81};
  options.motion.cx = options.motion.cy = 40;
  options.motion.kind = MotionKind::rotation;
  options.motion.angle_deg = 90;
  const Image reference = synth_frame(options, 0), turned = synth_frame(options, 1);
  options.motion.kind = MotionKind::affine;
  options.motion.ux = options.motion.vy = 1;
  const Image stretched = synth_frame(options, 1);
  for (int dy = -20; dy <= 20; ++dy)
    for (int dx = -20; dx <= 20; ++dx) {
      ASSERT_NEAR(grey(turned, 40 - dy, 40 + dx), grey(reference, 40 + dx, 40 + dy), 1);
      ASSERT_EQ(grey(stretched, 40 + 2 * dx, 40 + 2 * dy), grey(reference, 40 + dx, 40 + dy));
    }
}

TEST(SynthFrame, OpensACrackWithADarkGap) {
  SynthOptions options = small_options();
  options.motion = motion_of(MotionKind::crack);
  options.motion.amplitude = 4;
  options.motion.slip = 0;
  const Image reference = synth_frame(options, 0), current = synth_frame(options, 1);
  for (int x = 0; x < options.size.width; ++x) {
    for (int y = 0; y <= 35; ++y) ASSERT_EQ(grey(current, x, y), grey(reference, x, y + 4));
    for (int y = 36; y <= 43; ++y) ASSERT_EQ(grey(current, x, y), 20);
    for (int y = 44; y < options.size.height; ++y) ASSERT_EQ(grey(current, x, y), grey(reference, x, y - 4));
  }
}

/// The blob sum of the defocused frame equals that of the sharp one, averaged with Gaussian weights.
TEST(Speckle, BlurIsAConvolution) {
  const SpeckleSettings sharp{1.7, 3.4, 5, Texture::blobs, 1.5, 0};
  SpeckleSettings soft = sharp;
  soft.blur = 1.2;
  const Box box{-20, 20, -20, 20};
  const Speckle a(sharp, box), b(soft, box);
  for (const double x : {0.0, 3.3, 6.1}) {
    double sum = 0, weights = 0;
    for (double dy = -7; dy <= 7; dy += 0.25)
      for (double dx = -7; dx <= 7; dx += 0.25) {
        const double weight = std::exp(-(dx * dx + dy * dy) / (2 * 1.2 * 1.2));
        sum += weight * a.at(x + dx, 1.5 + dy);
        weights += weight;
      }
    EXPECT_NEAR(b.at(x, 1.5), sum / weights, 2e-6);
  }
}

TEST(SynthFrame, DotsShowTheAreaThatTheyCover) {
  SynthOptions options = small_options();
  options.texture = Texture::dots;
  options.motion.u = 0.4;
  options.bits = 16;
  const SpeckleSettings settings{options.blob_sigma, 4 * options.blob_sigma, options.seed, Texture::dots};
  const Speckle dots(settings, {-2, 98, -2, 82});
  const Image image = synth_frame(options, 1);
  double squares = 0;
  for (int y = 10; y < 40; ++y)
    for (int x = 10; x < 40; ++x) {
      double covered = 0;
      for (int j = 0; j < 100; ++j)
        for (int i = 0; i < 100; ++i)
          covered -= dots.at(x - 0.9 + (i + 0.5) / 100, y - 0.5 + (j + 0.5) / 100);
      const double error = grey(image, x, y) / 257.0 - (240 - 220 * covered / 1e4);
      ASSERT_NEAR(error, 0, 2.5) << x << ", " << y;
      squares += error * error;
    }
  EXPECT_LT(std::sqrt(squares / 900), 0.5);
}

TEST(SynthFrame, LatticeRepeatsItself) {
  SynthOptions options = small_options();
  options.texture = Texture::lattice;
  options.density = 1.0 / 144;
  const Image image = synth_frame(options, 0);
  for (int y = 0; y < 68; ++y)
    for (int x = 0; x < 84; ++x) ASSERT_NEAR(grey(image, x, y), grey(image, x + 12, y + 12), 1);
}

TEST(SynthFrame, GlareSaturatesItsShare) {
  SynthOptions options;
  options.glare = 0.05;
  const Image image = synth_frame(options, 1);
  int white = 0;
  for (int y = 0; y < 512; ++y)
    for (int x = 0; x < 512; ++x) white += grey(image, x, y) == 255;
  EXPECT_NEAR(white / (512.0 * 512), 0.05, 0.02);
}

TEST(SynthFrame, LightFallsToTheLeft) {
  SynthOptions options = small_options();
  const Image plain = synth_frame(options, 0);
  options.light_min = 0.15;
  const Image image = synth_frame(options, 0);
  for (int y = 0; y < options.size.height; ++y) {
    EXPECT_NEAR(grey(image, 0, y), 0.15 * grey(plain, 0, y), 1);
    EXPECT_EQ(grey(image, 95, y), grey(plain, 95, y));
  }
}

TEST(SynthFrame, ShotNoiseGrowsWithLight) {
  SynthOptions options;
  options.bits = 16;
  options.amounts = {0, 0};
  const Image clean = synth_frame(options, 0);
  options.full_well = 1000;
  const Image noisy = synth_frame(options, 1);
  double dark = 0, bright = 0, n_dark = 0, n_bright = 0;
  for (int y = 0; y < 512; ++y)
    for (int x = 0; x < 512; ++x) {
      const double truth = grey(clean, x, y) / 257.0, d = grey(noisy, x, y) / 257.0 - truth;
      if (truth < 100) dark += d * d / truth, ++n_dark;
      if (truth > 120 && truth < 180) bright += d * d / truth, ++n_bright;
    }
  EXPECT_NEAR(dark / n_dark, 0.255, 0.01);
  EXPECT_NEAR(bright / n_bright, 0.255, 0.01);
}

TEST(Measurable, KnowsWhatCannotBeSeen) {
  SynthOptions options = small_options();
  options.motion.u = 30;
  EXPECT_EQ(measurable(options, 1, 50, 40), Measurable::yes);
  EXPECT_EQ(measurable(options, 1, 70, 40), Measurable::no) << "left the image";
  EXPECT_EQ(measurable(options, 0, 70, 40), Measurable::yes);
  options.glare = 0.05;
  EXPECT_EQ(measurable(options, 1, 47, 40), Measurable::maybe);
  options.unrelated = true;
  EXPECT_EQ(measurable(options, 1, 50, 40), Measurable::no);
  options = small_options();
  options.texture = Texture::gradient;
  EXPECT_EQ(measurable(options, 1, 50, 40), Measurable::no);
}

TEST(SynthFrame, HasNoiseOfTheGivenSizeNewInEveryFrame) {
  for (const int bits : {8, 16}) {
    SynthOptions options;
    options.bits = bits;
    options.amounts = {0, 0, 0};
    const Image clean = synth_frame(options, 0);
    options.noise = 2;
    // variance of both images, grey levels squared
    const double level = bits == 8 ? 1 : 257, rounding = 1.0 / 6;
    const double expected = std::sqrt(4 * level * level + rounding), pixels = 512.0 * 512;
    const Image a = synth_frame(options, 1), b = synth_frame(options, 2);
    for (const Image* noisy : {&a, &b}) {
      const auto [mean, sd] = difference(*noisy, clean);
      EXPECT_NEAR(mean, 0, 5 * expected / std::sqrt(pixels));
      EXPECT_NEAR(sd, expected, 5 * expected / std::sqrt(2 * pixels));
    }
    EXPECT_NEAR(difference(a, b).second, std::sqrt(2) * expected, 0.02 * expected) << "independent";
    options.reference_noise = 0;
    EXPECT_EQ(difference(synth_frame(options, 0), clean).second, 0);
  }
}

TEST(SynthFrame, ChangesTheLightingInStepsToTheLastFrame) {
  SynthOptions options = small_options();
  options.bits = 16;
  options.amounts = {0, 0, 0};
  const Image plain = synth_frame(options, 0);
  options.gain = 0.5;
  options.offset = 30;
  const Image middle = synth_frame(options, 1), last = synth_frame(options, 2);
  EXPECT_EQ(difference(synth_frame(options, 0), plain), (std::pair{0.0, 0.0}));
  for (int x = 0; x < options.size.width; ++x) {
    EXPECT_NEAR(grey(middle, x, 40), 0.75 * grey(plain, x, 40) + 15 * 257, 1);
    EXPECT_NEAR(grey(last, x, 40), 0.5 * grey(plain, x, 40) + 30 * 257, 1);
  }
}

TEST(SynthFrame, DependsOnTheSeedAndNotOnThreads) {
  SynthOptions options = small_options();
  options.noise = 3;
  options.threads = 1;
  const Image one = synth_frame(options, 1);
  options.threads = 3;
  EXPECT_EQ(difference(synth_frame(options, 1), one), (std::pair{0.0, 0.0}));
  options.seed = 2;
  EXPECT_GT(difference(synth_frame(options, 1), one).second, 20);
}

/// Frame `i` with and without a change of the options.
template <typename Change>
std::pair<Image, Image> before_and_after(SynthOptions options, int i, const Change& change) {
  Image before = synth_frame(options, i);
  change(options);
  return {std::move(before), synth_frame(options, i)};
}

TEST(SynthFaults, ATextureRepeatsItself) {
  for (const Texture texture : {Texture::blobs, Texture::dots}) {
    SynthOptions options = small_options();
    options.texture = texture;
    options.faults.repeat = 30;
    options.motion.u = 0.3;
    for (const int frame : {0, 1}) {
      const Image image = synth_frame(options, frame);
      for (int y = 0; y < 50; ++y)
        for (int x = 0; x < 66; ++x) {
          ASSERT_NEAR(grey(image, x, y), grey(image, x + 30, y), 1);
          ASSERT_NEAR(grey(image, x, y), grey(image, x, y + 30), 1);
        }
    }
  }
}

TEST(SynthFaults, DefectivePixelsStayInPlace) {
  SynthOptions options = small_options();
  options.motion.u = 5;
  options.faults.defective = 0.1;
  const Image first = synth_frame(options, 0), second = synth_frame(options, 1);
  int black = 0, white = 0;
  for (int y = 0; y < 80; ++y)
    for (int x = 0; x < 96; ++x) {
      black += grey(first, x, y) == 0 && grey(second, x, y) == 0;
      white += grey(first, x, y) == 255 && grey(second, x, y) == 255;
    }
  EXPECT_NEAR(black / 7680.0, 0.1 / 3, 0.01);
  EXPECT_NEAR(white / 7680.0, 0.2 / 3, 0.015);
}

TEST(SynthFaults, RowsAndColumnsAddTheSameInEveryFrame) {
  SynthOptions options = small_options();
  options.bits = 16;
  options.grey_min = 100, options.grey_max = 150;
  const auto set = [](SynthOptions& o) { o.faults.line_pattern = 4; };
  const auto [plain, lines] = before_and_after(options, 0, set);
  const auto [plain_later, lines_later] = before_and_after(options, 1, set);
  const auto added = [&](int x, int y) { return grey(lines, x, y) - grey(plain, x, y); };
  for (int y = 0; y < 80; ++y)
    for (int x = 0; x < 96; ++x) {
      ASSERT_NEAR(added(x, y), added(x, 0) + added(0, y) - added(0, 0), 4);
      ASSERT_NEAR(grey(lines_later, x, y) - grey(plain_later, x, y), added(x, y), 2);
    }
  EXPECT_NEAR(difference(lines, plain).second / 257, 4 * std::numbers::sqrt2, 1);
}

TEST(SynthFaults, NeighboursShareCorrelatedNoise) {
  SynthOptions options = small_options();
  options.bits = 16;
  options.grey_min = 100, options.grey_max = 150;
  const auto [plain, noisy] =
      before_and_after(options, 0, [](SynthOptions& o) { o.noise = 5, o.faults.correlated_noise = true; });
  double square = 0, product = 0;
  for (int y = 0; y < 80; ++y)
    for (int x = 0; x < 95; ++x) {
      const double here = grey(noisy, x, y) - grey(plain, x, y);
      square += here * here, product += here * (grey(noisy, x + 1, y) - grey(plain, x + 1, y));
    }
  EXPECT_NEAR(std::sqrt(square / (80 * 95)) / 257, 5, 0.3);
  EXPECT_NEAR(product / square, 2 / 3.0, 0.05) << "of a filter with weights 1, 2, 1";
}

TEST(SynthFaults, RowsAreDisplacedAnewInEveryFrame) {
  SynthOptions options = small_options();
  options.bits = 16;
  options.texture = Texture::gradient;
  const double slope = 257 * (options.grey_max - options.grey_min) / 95;
  std::vector<double> shifts[2];
  for (const int frame : {0, 1}) {
    const auto [plain, jittered] =
        before_and_after(options, frame, [](SynthOptions& o) { o.faults.line_jitter = 0.3; });
    // The darkest grey of the jittered image is that of its leftmost row: a constant is added.
    for (int y = 0; y < 80; ++y) {
      shifts[frame].push_back((grey(jittered, 40, y) - grey(jittered, 60, y)) / slope + 20);
      ASSERT_NEAR(shifts[frame].back(), 0, 0.5) << "a row stays as long as it was";
      shifts[frame].back() = grey(jittered, 50, y) - grey(plain, 50, y);
    }
  }
  double mean[2] = {}, square[2] = {}, product = 0;
  for (const int frame : {0, 1})
    for (const double shift : shifts[frame]) mean[frame] += shift / 80;
  for (int y = 0; y < 80; ++y) {
    for (const int frame : {0, 1}) square[frame] += std::pow(shifts[frame][y] - mean[frame], 2) / 80;
    product += (shifts[0][y] - mean[0]) * (shifts[1][y] - mean[1]) / 80;
  }
  EXPECT_NEAR(std::sqrt(square[0]) / slope, 0.3, 0.08);
  EXPECT_LT(std::abs(product) / std::sqrt(square[0] * square[1]), 0.4);
}

TEST(SynthFaults, TheMedianIsThatOfSortedNeighbours) {
  SynthOptions options = small_options();
  options.noise = 10;
  const auto [plain, filtered] = before_and_after(options, 1, [](SynthOptions& o) { o.faults.median = 3; });
  for (const auto& [x, y] : {std::pair{1, 1}, {40, 30}, {94, 78}}) {
    std::vector<int> around;
    for (int j = -1; j <= 1; ++j)
      for (int i = -1; i <= 1; ++i) around.push_back(grey(plain, x + i, y + j));
    std::ranges::sort(around);
    EXPECT_EQ(grey(filtered, x, y), around[4]);
  }
}

TEST(SynthFaults, PixelsWithLessLightSensitiveAreaHaveSharperEdges) {
  SynthOptions options = small_options();
  options.texture = Texture::dots;
  const auto [whole, quarter] =
      before_and_after(options, 1, [](SynthOptions& o) { o.faults.fill_factor = 0.25; });
  int between_whole = 0, between_quarter = 0;
  for (int y = 0; y < 80; ++y)
    for (int x = 0; x < 96; ++x) {
      between_whole += grey(whole, x, y) > 20 && grey(whole, x, y) < 240;
      between_quarter += grey(quarter, x, y) > 20 && grey(quarter, x, y) < 240;
    }
  EXPECT_NEAR(static_cast<double>(between_quarter) / between_whole, 0.5, 0.1);
}

TEST(SynthFaults, ValuesOfTheFileHaveTheRangeAskedFor) {
  SynthOptions options = small_options();
  const Image two = before_and_after(options, 1, [](SynthOptions& o) { o.faults.two_valued = true; }).second;
  std::set<int> values;
  for (int y = 0; y < 80; ++y)
    for (int x = 0; x < 96; ++x) values.insert(grey(two, x, y));
  EXPECT_EQ(values, (std::set{0, 255}));

  options.bits = 12;
  options.glare = 0.1;
  const Image glare = synth_frame(options, 0);
  EXPECT_EQ(glare.type(), ScalarType::u16);
  EXPECT_EQ(grey(glare, 48, 40), 4095);

  options = small_options();
  options.bits = 16;
  options.grey_min = 0, options.grey_max = 15;
  const auto [plain, raised] =
      before_and_after(options, 0, [](SynthOptions& o) { o.faults.pedestal = 60000; });
  for (int x = 0; x < 96; ++x) ASSERT_NEAR(grey(raised, x, 40) - grey(plain, x, 40), 60000, 1);
}

TEST(SynthOptions, NamesProblems) {
  const auto refused = [](auto change) {
    SynthOptions options = small_options();
    options.motion.width = options.size.width;
    change(options);
    EXPECT_FALSE(options.validate().empty());
    EXPECT_THROW(synth_frame(options, 0), UsageError);
  };
  EXPECT_TRUE(small_options().validate().empty());
  refused([](SynthOptions& o) { o.size.width = 0; });
  refused([](SynthOptions& o) { o.bits = 10; });
  refused([](SynthOptions& o) { o.blob_sigma = std::nan(""); });
  refused([](SynthOptions& o) { o.density = -1; });
  refused([](SynthOptions& o) { o.grey_max = 300; });
  refused([](SynthOptions& o) { o.noise = -1; });
  refused([](SynthOptions& o) { o.amounts = {}; });
  refused([](SynthOptions& o) { o.amounts = {0.5, 1}; });
  refused([](SynthOptions& o) { o.motion.u = std::nan(""); });
  refused([](SynthOptions& o) { o.motion.kind = MotionKind::affine, o.motion.ux = -1.5; });
  refused([](SynthOptions& o) { o.motion.kind = MotionKind::star, o.motion.amplitude = 5; });
  refused([](SynthOptions& o) { o.motion.kind = MotionKind::crack, o.motion.amplitude = -1; });
  refused([](SynthOptions& o) { o.motion.kind = MotionKind::chirp, o.motion.amplitude = 5; });
  refused([](SynthOptions& o) { o.motion.kind = MotionKind::ramp, o.motion.amplitude = -60; });
  refused([](SynthOptions& o) { o.motion.bodies = {{5, 5, 0, 0, 0, 0}}; });
  refused([](SynthOptions& o) { o.size_spread = 0.5; });
  refused([](SynthOptions& o) { o.full_well = -1; });
  refused([](SynthOptions& o) { o.light_min = 0; });
  refused([](SynthOptions& o) { o.glare = 1; });
  refused([](SynthOptions& o) { o.blur = -1; });
  refused([](SynthOptions& o) { o.faults.repeat = 1; });
  refused([](SynthOptions& o) { o.faults.fill_factor = 0; });
  refused([](SynthOptions& o) { o.faults.line_jitter = 2; });
  refused([](SynthOptions& o) { o.faults.line_pattern = -1; });
  refused([](SynthOptions& o) { o.faults.defective = 0.6; });
  refused([](SynthOptions& o) { o.faults.median = 4; });
  refused([](SynthOptions& o) { o.faults.pedestal = std::nan(""); });
  refused([](SynthOptions& o) { o.blur = 1, o.texture = Texture::dots; });
  refused([](SynthOptions& o) { o.blur = 1, o.motion.kind = MotionKind::affine; });
  EXPECT_THROW(synth_frame(small_options(), 2), UsageError);
}

class SynthSequence : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::temp_directory_path() / ("dic synth " + std::to_string(getpid()));
};

std::vector<double> read_dataset(hid_t file, const char* name, std::size_t size) {
  std::vector<double> values(size);
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
  EXPECT_EQ(H5Sget_simple_extent_npoints(space), static_cast<hssize_t>(size)) << name;
  H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Sclose(space);
  H5Dclose(dataset);
  return values;
}

TEST_F(SynthSequence, WritesFramesAndTruth) {
  SynthOptions options = small_options();
  options.amounts = {0, 0.5, 1};
  options.motion = motion_of(MotionKind::affine);
  synth_sequence(options, folder_, 16, "dic synth ...");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(
        difference(read_image(folder_ / ("frame_000" + std::to_string(i) + ".png")), synth_frame(options, i)),
        (std::pair{0.0, 0.0}));

  constexpr int kColumns = 6, kRows = 5;  // 0, 16, ... below 96 and 80
  const hid_t file = H5Fopen((folder_ / "truth.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const auto u = read_dataset(file, "u", 3 * kRows * kColumns), v = read_dataset(file, "v", u.size());
  EXPECT_EQ(read_dataset(file, "x", kColumns)[5], 80);
  EXPECT_EQ(read_dataset(file, "y", kRows)[4], 64);
  EXPECT_EQ(read_dataset(file, "amount", 3)[1], 0.5);
  H5Fclose(file);

  std::ifstream csv(folder_ / "truth.csv");
  std::string header;
  std::getline(csv, header);
  EXPECT_EQ(header, "frame,x,y,u,v,body,measurable");
  const Motion& m = options.motion;
  for (std::size_t i = 0; i < u.size(); ++i) {
    double frame = 0, x = 0, y = 0, csv_u = 0, csv_v = 0, body = 0, seen = 0;
    char comma = 0;
    ASSERT_TRUE(csv >> frame >> comma >> x >> comma >> y >> comma >> csv_u >> comma >> csv_v >> comma >>
                body >> comma >> seen);
    EXPECT_EQ(frame, static_cast<double>(i / (kRows * kColumns)));
    EXPECT_EQ(x, 16.0 * static_cast<double>(i % kColumns));
    EXPECT_EQ(y, 16.0 * static_cast<double>(i / kColumns % kRows));
    const double amount = frame / 2;
    EXPECT_NEAR(csv_u, amount * (m.u + m.ux * (x - m.cx) + m.uy * (y - m.cy)), 1e-9);
    EXPECT_NEAR(csv_v, amount * (m.v + m.vx * (x - m.cx) + m.vy * (y - m.cy)), 1e-9);
    EXPECT_NEAR(u[i], csv_u, 1e-9);
    EXPECT_NEAR(v[i], csv_v, 1e-9);
    EXPECT_EQ(seen, static_cast<double>(measurable(options, static_cast<int>(frame), x, y)));
  }
  EXPECT_FALSE(csv >> header);
}

TEST_F(SynthSequence, RefusesAFolderThatHoldsSomething) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "frame_0099.png") << "x";
  EXPECT_THROW(synth_sequence(small_options(), folder_, 16, ""), FileError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  EXPECT_THROW(synth_sequence(small_options(), folder_ / "frame_0099.png" / "x", 16, ""), FileError);
}

}  // namespace
}  // namespace dic
