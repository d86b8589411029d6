#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/match.hpp>

#include "match/box.hpp"
#include "match/candidates.hpp"
#include "support/match_support.hpp"

// Tests that every criterion finds templates at their positions.
namespace dic {
namespace {

using namespace test;

void expect_scores_in_range(const MatchResult& result) {
  for (const Match& match : result.matches) {
    EXPECT_GE(match.score, -1);  // also fails for NaN
    EXPECT_LE(match.score, 1);
    EXPECT_TRUE(std::isfinite(match.x) && std::isfinite(match.y));
  }
  EXPECT_GE(result.best_score, -1);
  EXPECT_LE(result.best_score, 1);
}

class EveryMethod : public testing::TestWithParam<Criterion> {};

TEST_P(EveryMethod, FindsAnExactCropOfAnySizeAndType) {
  const Speckle speckle(150, 120, 1.7, 11);
  MatchOptions options = cpu_options();
  options.method = GetParam();
  for (const ScalarType type : {ScalarType::u8, ScalarType::u16, ScalarType::f32}) {
    const Image image = render(speckle, 150, 120, type, 100, 40);
    for (const auto& [width, height] : {std::pair{64, 64}, {33, 21}, {16, 40}, {5, 7}, {150, 120}}) {
      const int x = (150 - width) / 3, y = (120 - height) / 2;
      const MatchResult result = find_one(crop(image, x, y, width, height), image, options);
      ASSERT_EQ(result.matches.size(), 1U) << to_string(type) << ' ' << width;
      const Match& match = result.matches[0];
      EXPECT_NEAR(match.score, 1, 1e-6);
      EXPECT_NEAR(match.x, x, 1e-3);
      EXPECT_NEAR(match.y, y, 1e-3);
      EXPECT_NEAR(match.center_x, x + (width - 1) / 2.0, 1e-3);
      EXPECT_NEAR(match.center_y, y + (height - 1) / 2.0, 1e-3);
    }
  }
}

/// NCC of all these places differs by less than a float near 1 can tell.
TEST_P(EveryMethod, FindsAnExactCropOnAPedestal) {
  const Speckle speckle(150, 120, 2.5, 11);
  MatchOptions options = cpu_options();
  options.method = GetParam();
  for (const auto& [type, mean, amplitude] : {std::tuple{ScalarType::u16, 60000.0, 4.0},
                                              {ScalarType::u16, 60000.0, 40.0},
                                              {ScalarType::u16, 3000.0, 4.0},
                                              {ScalarType::u8, 250.0, 2.0},
                                              {ScalarType::f32, 20000.0, 4.0}}) {
    Image image = render(speckle, 150, 120, type, mean, amplitude);
    for (const int most : {1, 3})
      for (const auto& [x, y, width, height] :
           {std::tuple{90, 50, 40, 30}, {0, 0, 40, 30}, {110, 90, 40, 30}, {30, 20, 33, 21}}) {
        options.max_matches = most;
        const MatchResult result = find_one(crop(image, x, y, width, height), image, options);
        ASSERT_GE(result.matches.size(), 1U);
        EXPECT_NEAR(result.matches[0].x, x, 0.05) << mean << ' ' << amplitude << ' ' << most;
        EXPECT_NEAR(result.matches[0].y, y, 0.05) << mean << ' ' << amplitude << ' ' << most;
        EXPECT_NEAR(result.matches[0].score, 1, 1e-6);
      }
  }
}

TEST(MatchOnAPedestal, FindsMaskedTurnedAndDarkerTemplates) {
  const Speckle speckle(160, 130, 2.5, 12);
  MatchOptions options = cpu_options();
  options.method = Criterion::ncc;
  Image image = render(speckle, 160, 130, ScalarType::u16, 60000, 4);
  for (int y = 0; y < 130; ++y)
    std::fill_n(image.row<std::uint16_t>(y), 30, std::uint16_t{0});  // a dark border
  Image wanted = copy_of(crop(image, 90, 50, 40, 30)), mask({40, 30}, ScalarType::u8);
  for (int y = 4; y < 30; ++y) std::fill_n(mask.row<std::uint8_t>(y), 30, std::uint8_t{1});
  for (int y = 0; y < 4; ++y) std::fill_n(wanted.row<std::uint16_t>(y), 40, std::uint16_t{1234});
  const MatchResult masked = find_one(wanted, image, options, mask);
  ASSERT_EQ(masked.matches.size(), 1U);
  EXPECT_NEAR(masked.matches[0].x, 90, 0.05);
  EXPECT_NEAR(masked.matches[0].y, 50, 0.05);

  Image darker({40, 30}, ScalarType::f32);
  for (int y = 0; y < 30; ++y)
    for (int x = 0; x < 40; ++x)
      darker.row<float>(y)[x] = static_cast<float>(image.row<std::uint16_t>(50 + y)[90 + x]) / 3;
  const MatchResult found = find_one(darker, image, options);
  ASSERT_EQ(found.matches.size(), 1U);
  EXPECT_NEAR(found.matches[0].x, 90, 0.05);
  EXPECT_NEAR(found.matches[0].y, 50, 0.05);

  options.rotations = {-10, 0, 10};
  const double cosine = std::cos(0.1745329252), sine = std::sin(0.1745329252);
  const Image turned = render(speckle, 160, 130, ScalarType::u16, 60000, 40, [&](double x, double y) {
    return std::array{80 + cosine * (x - 80) + sine * (y - 65), 65 - sine * (x - 80) + cosine * (y - 65)};
  });
  const Image straight = render(speckle, 160, 130, ScalarType::u16, 60000, 40);
  const MatchResult at = find_one(crop(straight, 60, 50, 41, 31), turned, options);  // around (80, 65)
  ASSERT_EQ(at.matches.size(), 1U);
  EXPECT_EQ(at.matches[0].rotation_deg, 10);
  EXPECT_NEAR(at.matches[0].center_x, 80, 0.1);
  EXPECT_NEAR(at.matches[0].center_y, 65, 0.1);
}

TEST_P(EveryMethod, FindsAnExactCropOfWhiteNoise) {
  const Image image = noise_image(90, 70, 5);
  MatchOptions options = cpu_options();
  options.method = GetParam();
  for (const auto& [x, y] : {std::pair{0, 0}, {40, 31}, {74, 54}}) {
    const MatchResult result = find_one(crop(image, x, y, 16, 16), image, options);
    ASSERT_EQ(result.matches.size(), 1U);
    EXPECT_NEAR(result.matches[0].score, 1, 1e-6);
    EXPECT_NEAR(result.matches[0].x, x, 1e-3);
    EXPECT_NEAR(result.matches[0].y, y, 1e-3);
  }
}

/// Largest position error of a 34 x 22 template over sub-pixel shifts in x and y.
double worst_shift_error(ScalarType type, double sigma, const MatchOptions& options) {
  const Speckle speckle(110, 90, sigma, 3);
  const auto frame = [&](double u, double v) {
    return render(speckle, 110, 90, type, 128, 50, [=](double x, double y) {
      return std::array{x - u, y - v};
    });
  };
  const Image reference = frame(0, 0);
  double worst = 0;
  for (int k = 0; k <= 20; ++k) {
    const double u = 0.05 * k, v = -1 + 0.085 * k;
    const MatchResult result = find_one(crop(reference, 40, 30, 34, 22), frame(u, v), options);
    if (result.matches.size() != 1 || result.matches[0].score < 0.998) return 100;
    worst = std::max({worst, std::abs(result.matches[0].x - 40 - u), std::abs(result.matches[0].y - 30 - v)});
  }
  return worst;
}

TEST_P(EveryMethod, MeasuresKnownSubpixelShifts) {
  MatchOptions options = cpu_options();
  options.method = GetParam();
  const double bias = worst_shift_error(ScalarType::f32, 1.7, options);
  const double sharp_bias = worst_shift_error(ScalarType::f32, 1.0, options);
  const double with_rounding = worst_shift_error(ScalarType::u8, 1.7, options);
  RecordProperty("bias_px", std::to_string(bias));
  RecordProperty("sharp_bias_px", std::to_string(sharp_bias));
  RecordProperty("with_8_bit_rounding_px", std::to_string(with_rounding));
  EXPECT_LT(bias, 3e-4);
  EXPECT_LT(sharp_bias, 3e-3);
  EXPECT_LT(with_rounding, 6e-3);
}

TEST_P(EveryMethod, KeepsScoresInRangeOnFlatSaturatedAndFaintImages) {
  MatchOptions options = cpu_options();
  options.method = GetParam();
  options.threshold = -1;
  options.max_matches = 50;
  const Image noise = noise_image(60, 50, 8);
  const ImageView wanted = crop(noise, 10, 10, 9, 8);
  Image saturated = constant_image(60, 50, 255);
  for (int y = 5; y < 20; ++y) std::fill_n(saturated.row<std::uint8_t>(y) + 7, 20, std::uint8_t{0});
  Image faint = constant_image(60, 50, 254);
  faint.row<std::uint8_t>(20)[30] = 255;
  Image bright({60, 50}, ScalarType::u16);
  for (int y = 0; y < 50; ++y)
    for (int x = 0; x < 60; ++x)
      bright.row<std::uint16_t>(y)[x] = static_cast<std::uint16_t>(65534 + (x * y) % 2);
  for (const Image* image : std::initializer_list<const Image*>{&saturated, &faint, &noise}) {
    expect_scores_in_range(find_one(wanted, *image, options));
    expect_scores_in_range(find_one(crop(saturated, 0, 0, 15, 15), *image, options));
    expect_scores_in_range(find_one(crop(faint, 25, 15, 11, 11), *image, options));
  }
  expect_scores_in_range(find_one(crop(bright, 3, 3, 12, 12), bright, options));
  expect_scores_in_range(find_one(wanted, constant_image(60, 50, 0), options));
  expect_scores_in_range(find_one(wanted, constant_image(60, 50, 255), options));
}

TEST_P(EveryMethod, TransformsFindWhatTheExhaustiveSearchFinds) {
  const Speckle speckle(260, 220, 2, 31);
  Image image = render(speckle, 260, 220, ScalarType::u16, 30000, 12000);
  for (int y = 0; y < 220; ++y)  // with little contrast, where sums of transforms are too inaccurate
    for (int x = 0; x < 130; ++x) image.row<std::uint16_t>(y)[x] /= 200;
  for (const double rotation : {0.0, 7.0, 90.0})
    for (const int most : {1, 4}) {
      MatchOptions options = cpu_options();
      options.method = GetParam();
      options.rotations = {rotation};
      options.max_matches = most;
      options.threshold = 0.1;
      options.variant = "cpu-direct";
      const ImageView wanted = crop(image, 40, 60, 48, 44);
      const MatchResult expected = find_one(wanted, image, options);
      options.variant = "cpu-fft";
      const MatchResult found = find_one(wanted, image, options);
      EXPECT_NEAR(found.best_score, expected.best_score, 1e-9);
      ASSERT_EQ(found.matches.size(), expected.matches.size()) << rotation << ' ' << most;
      for (std::size_t k = 0; k < found.matches.size(); ++k) {
        EXPECT_NEAR(found.matches[k].x, expected.matches[k].x, 1e-4);
        EXPECT_NEAR(found.matches[k].y, expected.matches[k].y, 1e-4);
        EXPECT_NEAR(found.matches[k].score, expected.matches[k].score, 1e-5);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Match, EveryMethod, testing::Values(Criterion::zncc, Criterion::ncc, Criterion::ssd),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

}  // namespace
}  // namespace dic
