#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/match.hpp>
#include <dic/shared/pose.hpp>
#include <functional>
#include <numbers>
#include <random>

#include "match/loose_motion.hpp"
#include "match/pose_image.hpp"
#include "match/pose_kernels.hpp"
#include "match/pose_sigmas.hpp"
#include "match/pose_template.hpp"
#include "support/match_support.hpp"

// Search of poses: rotation, scale, border, hidden pixels, polarity, tracking. Scenes are evaluated
// analytically.
namespace dic {
namespace {

using namespace test;

constexpr int kWidth = 320, kHeight = 240, kTemplateWidth = 56, kTemplateHeight = 44;
constexpr double kDegree = std::numbers::pi / 180;

struct Place {
  double x = 0, y = 0, degrees = 0, scale = 1, gain = 30;  ///< of the template's centre; gain: grey levels
};

const Speckle& part() {
  static const Speckle speckle(kTemplateWidth, kTemplateHeight, 3, 5);
  return speckle;
}

Image part_image() { return render(part(), kTemplateWidth, kTemplateHeight, ScalarType::u8, 128, 30); }

/// A smooth background of some grey levels with the part at some places.
Image scene(const std::vector<Place>& places, double contrast = 12) {
  const Speckle background(kWidth, kHeight, 5, 77);
  Image image({kWidth, kHeight}, ScalarType::u8);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      double grey = 120 + contrast * background.at(x, y);
      for (const Place& p : places) {
        const double c = std::cos(p.degrees * kDegree) / p.scale, s = std::sin(p.degrees * kDegree) / p.scale;
        const double xi = c * (x - p.x) + s * (y - p.y), eta = c * (y - p.y) - s * (x - p.x);
        if (std::abs(xi) > kTemplateWidth / 2.0 || std::abs(eta) > kTemplateHeight / 2.0) continue;
        grey = 128 + p.gain * part().at(xi + (kTemplateWidth - 1) / 2.0, eta + (kTemplateHeight - 1) / 2.0);
      }
      image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::lround(std::clamp(grey, 0.0, 255.0)));
    }
  return image;
}

MatchOptions any_angle(int matches = 1) {
  MatchOptions options = cpu_options();
  options.max_matches = matches;
  options.rotation_range = {-180, 180};
  return options;
}

void expect_at(const Match& match, const Place& place, double pixels, double degrees, double scale) {
  EXPECT_NEAR(match.center_x, place.x, pixels);
  EXPECT_NEAR(match.center_y, place.y, pixels);
  EXPECT_NEAR(std::remainder(match.rotation_deg - place.degrees, 360), 0, degrees);
  EXPECT_NEAR(match.scale, place.scale, scale);
}

TEST(Pose, StepsComposeToTheirInverse) {
  const pose::Warp start = pose::similarity(10, 20, 0.3, 1.2);
  const double free[] = {0.1, -0.2, 0.05, 0.02};
  double step[pose::kGeometric];
  pose::geometric_step(pose::Freedom::similarity, free, step);
  const pose::Warp moved = pose::composed(start, step);
  // The point that the step maps to (xi, eta) has the same image position as (xi, eta) before.
  const double xi = 3, eta = -4, u = xi + step[0] + step[2] * xi + step[3] * eta,
               v = eta + step[1] + step[4] * xi + step[5] * eta;
  EXPECT_NEAR(moved.center_x + moved.xx * u + moved.xy * v, start.center_x + start.xx * xi + start.xy * eta,
              1e-9);
  EXPECT_NEAR(moved.center_y + moved.yx * u + moved.yy * v, start.center_y + start.yx * xi + start.yy * eta,
              1e-9);
  EXPECT_NEAR(pose::rotation_of(moved), 0.25, 1e-9);
  EXPECT_NEAR(pose::scale_of(moved), 1.2 * std::exp(-0.02), 1e-9);
  const pose::Warp there = pose::from_level(pose::at_level(start, 3), 3);
  EXPECT_NEAR(there.center_x, 10, 1e-12);
  EXPECT_NEAR(there.center_y, 20, 1e-12);
}

template <typename T>
void expect_halved(ScalarType type, int width, int height) {
  SCOPED_TRACE(testing::Message() << width << " x " << height << " " << to_string(type));
  Image image({width, height}, type);
  std::mt19937 random(static_cast<unsigned>(31 * width + height));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) image.row<T>(y)[x] = static_cast<T>(random() % 256);
  core::ThreadPool pool(2);
  match::FloatImage got;
  match::make_reduced(ImageView(image), pool, got);
  ASSERT_EQ(got.width, width / 2);
  ASSERT_EQ(got.height, height / 2);
  constexpr double kTaps[] = {1, 3, 3, 1};
  for (int y = 0; y < got.height; ++y)
    for (int x = 0; x < got.width; ++x) {
      double sum = 0;
      for (int j = 0; j < 4; ++j)
        for (int i = 0; i < 4; ++i)
          sum += kTaps[i] * kTaps[j] / 64 *
                 static_cast<double>(image.row<T>(
                     std::clamp(2 * y - 1 + j, 0, height - 1))[std::clamp(2 * x - 1 + i, 0, width - 1)]);
      ASSERT_NEAR(got.row(y)[x], sum, 1e-4) << x << ", " << y;
    }
}

TEST(Pose, ReducedImagesAreLowPassedByFourTaps) {
  for (const auto& [width, height] :
       {std::pair{2, 2}, {1, 7}, {3, 5}, {16, 9}, {33, 4}, {64, 3}, {67, 21}, {130, 2}}) {
    expect_halved<std::uint8_t>(ScalarType::u8, width, height);
    expect_halved<std::uint16_t>(ScalarType::u16, width, height);
    expect_halved<float>(ScalarType::f32, width, height);
  }
}

TEST(Pose, AnyAngleIsMeasured) {
  for (const double degrees : {0.0, 33.3, 91.7, 179.6, -120.4}) {
    const Place place{.x = 150.3, .y = 110.8, .degrees = degrees};
    const Image image = scene({place});
    const Image wanted = part_image();
    const MatchResult result = find_one(wanted, image, any_angle());
    ASSERT_EQ(result.matches.size(), 1U) << degrees;
    const Match& match = result.matches[0];
    expect_at(match, place, 0.015, 0.03, 0);
    EXPECT_TRUE(match.refined);
    EXPECT_GT(match.score, 0.98);
    EXPECT_GT(match.visible, 0.95);
    EXPECT_GT(match.sigma_x, 0);
    EXPECT_LT(match.sigma_x, 0.02);
    EXPECT_GT(match.sigma_rotation_deg, 0);
    EXPECT_EQ(match.sigma_scale, 0);
    EXPECT_FALSE(result.timed_out);
  }
}

TEST(Pose, AngleAndScaleAreMeasuredTogether) {
  const std::vector<Place> places = {
      {80.4, 70.2, 40.1, 1.21}, {220.7, 80.6, -75.2, 0.84}, {150.2, 180.9, 168.8, 1.03}};
  const Image image = scene(places), wanted = part_image();
  MatchOptions options = any_angle(3);
  options.scale_range = {0.8, 1.25};
  const MatchResult result = find_one(wanted, image, options);
  ASSERT_EQ(result.matches.size(), 3U);
  for (const Place& place : places) {
    const auto match = std::ranges::min_element(result.matches, {}, [&](const Match& m) {
      return std::hypot(m.center_x - place.x, m.center_y - place.y);
    });
    expect_at(*match, place, 0.02, 0.05, 0.002);
  }
}

TEST(Pose, TemplatesOfSeveralSizesAreFoundTogetherAsAlone) {
  const Image image = scene({{.x = 150.3, .y = 110.8, .degrees = 130}}), whole = part_image();
  const std::vector<ImageView> templates = {crop(whole, 8, 4, 36, 36), crop(whole, 4, 2, 48, 38), whole,
                                            crop(whole, 0, 12, 56, 24), crop(whole, 10, 10, 24, 24)};
  MatchOptions options = any_angle();
  Matcher matcher(templates, options);
  options.threads = 1;
  Matcher alone(templates, options);
  const std::vector<MatchResult> together = matcher.find_each(image);
  ASSERT_EQ(together.size(), templates.size());
  for (std::size_t k = 0; k < templates.size(); ++k) {
    const MatchResult one = alone.find_template(static_cast<int>(k), image);
    ASSERT_EQ(together[k].matches.size(), 1U);
    ASSERT_EQ(one.matches.size(), 1U);
    const Match &a = together[k].matches[0], &b = one.matches[0];
    EXPECT_EQ(a.template_index, static_cast<int>(k));
    EXPECT_EQ(a.template_index, b.template_index);
    EXPECT_EQ(a.center_x, b.center_x);
    EXPECT_EQ(a.rotation_deg, b.rotation_deg);
    EXPECT_EQ(a.score, b.score);
    EXPECT_EQ(together[k].best_score, one.best_score);
  }
  const MatchResult merged = matcher.find(image);
  ASSERT_EQ(merged.matches.size(), templates.size());
  EXPECT_TRUE(std::ranges::is_sorted(merged.matches, std::ranges::greater{}, &Match::score));
}

TEST(Pose, ARangeLeavesOtherAnglesOut) {
  const std::vector<Place> places = {
      {60.2, 60.4, 12, 1}, {170.5, 60.6, 100, 1}, {60.4, 170.3, 23, 1}, {170.1, 170.8, 0, 1.08}};
  const Image image = scene(places), wanted = part_image();
  MatchOptions options = any_angle(4);
  options.rotation_range = {-20, 20};
  options.scale_range = {0.95, 1.03};
  options.threshold = 0.8;
  const MatchResult result = find_one(wanted, image, options);
  ASSERT_EQ(result.matches.size(), 1U);
  expect_at(result.matches[0], places[0], 0.015, 0.03, 0.001);
}

TEST(Pose, TheEndsOfARangeBelongToIt) {
  const Place place{.x = 150.3, .y = 110.8, .degrees = 20, .scale = 1.1};
  MatchOptions options = any_angle();
  options.rotation_range = {-20, 20};
  options.scale_range = {0.9, 1.1};
  const MatchResult result = find_one(part_image(), scene({place}), options);
  ASSERT_EQ(result.matches.size(), 1U);
  expect_at(result.matches[0], place, 0.015, 0.03, 0.001);
}

TEST(Pose, PartsCutByTheBorderAreFound) {
  const Place place{.x = 12.4, .y = 120.3, .degrees = 25};
  const Image image = scene({place}), wanted = part_image();
  const MatchResult result = find_one(wanted, image, any_angle());
  ASSERT_EQ(result.matches.size(), 1U);
  expect_at(result.matches[0], place, 0.03, 0.1, 0);
  EXPECT_LT(result.matches[0].visible, 0.9);
}

TEST(Pose, HiddenPixelsLoseTheirWeight) {
  const Place place{.x = 150.3, .y = 110.8, .degrees = 0};
  Image image = scene({place});
  for (int y = 80; y < 140; ++y) std::fill_n(image.row<std::uint8_t>(y) + 166, 20, 175);
  const Image wanted = part_image();
  const MatchResult result = find_one(wanted, image, any_angle());
  ASSERT_EQ(result.matches.size(), 1U);
  expect_at(result.matches[0], place, 0.05, 0.1, 0);
  EXPECT_LT(result.matches[0].visible, 0.9);
}

TEST(Pose, CoversOfAnyGreyAtAnySideAreSurvived) {
  // The cover's contrast against the part is much larger than that of the part, so that all pixels together
  // do not resemble it.
  const Place place{.x = 150.3, .y = 110.8, .degrees = 0};
  const int left = 150 - kTemplateWidth / 2, top = 111 - kTemplateHeight / 2;
  const struct {
    int x, y, width, height;
  } covers[] = {{left, top, 12, kTemplateHeight},
                {left + kTemplateWidth - 12, top, 12, kTemplateHeight},
                {left, top, kTemplateWidth, 9},
                {left, top + kTemplateHeight - 9, kTemplateWidth, 9}};
  for (const auto& cover : covers)
    for (const std::uint8_t grey : {0, 255}) {
      SCOPED_TRACE(std::to_string(cover.x) + ", " + std::to_string(cover.y) + ", grey " +
                   std::to_string(grey));
      Image image = scene({place});
      for (int y = 0; y < cover.height; ++y)
        std::fill_n(image.row<std::uint8_t>(cover.y + y) + cover.x, cover.width, grey);
      const Image wanted = part_image();
      const MatchResult result = find_one(wanted, image, any_angle());
      ASSERT_EQ(result.matches.size(), 1U);
      expect_at(result.matches[0], place, 0.05, 0.1, 0);
      EXPECT_NEAR(result.matches[0].visible, 0.8, 0.08);
    }
}

TEST(Pose, SigmasAreTheScatter) {
  const Image wanted = part_image();
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 3);
  std::uniform_real_distribution<double> uniform(0, 1);
  constexpr int kCount = 60;
  int within = 0;
  double worst = 0;
  for (int k = 0; k < kCount; ++k) {
    const Place place{
        .x = 100 + 100 * uniform(random), .y = 100 + 40 * uniform(random), .degrees = 360 * uniform(random)};
    Image image = scene({place});
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        std::uint8_t& grey = image.row<std::uint8_t>(y)[x];
        grey = static_cast<std::uint8_t>(std::lround(std::clamp(grey + noise(random), 0.0, 255.0)));
      }
    const MatchResult result = find_one(wanted, image, any_angle());
    ASSERT_EQ(result.matches.size(), 1U);
    const Match& m = result.matches[0];
    const double turn = std::remainder(m.rotation_deg - place.degrees, 360);
    for (const auto& [error, sigma] :
         {std::pair{m.center_x - place.x, m.sigma_x}, std::pair{m.center_y - place.y, m.sigma_y},
          std::pair{turn, m.sigma_rotation_deg}}) {
      within += std::abs(error) <= sigma;
      worst = std::max(worst, std::abs(error) / sigma);
    }
  }
  EXPECT_NEAR(within / (3.0 * kCount), 0.68, 0.12);
  EXPECT_LT(worst, 4.5);
}

Image with_noise(Image image, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, deviation);
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) {
      std::uint8_t& grey = image.row<std::uint8_t>(y)[x];
      grey = static_cast<std::uint8_t>(std::lround(std::clamp(grey + noise(random), 0.0, 255.0)));
    }
  return image;
}

TEST(Pose, SigmasCountTheNoiseOfFaintTemplates) {
  // Noise in the template makes it seem rich in detail. Its contrast is that of the noise.
  std::mt19937 random(12);
  std::uniform_real_distribution<double> uniform(0, 1);
  MatchOptions options = any_angle();
  options.threshold = 0.3;
  double squares = 0, worst = 0;
  int found = 0;
  for (unsigned k = 0; k < 40; ++k) {
    const Image wanted =
        with_noise(render(part(), kTemplateWidth, kTemplateHeight, ScalarType::u8, 128, 5), 2, 100 + k);
    const Place place{.x = 110 + 90 * uniform(random),
                      .y = 100 + 40 * uniform(random),
                      .degrees = 360 * uniform(random),
                      .gain = 5};
    const MatchResult result = find_one(wanted, with_noise(scene({place}), 2, k), options);
    if (result.matches.empty()) continue;
    const Match& m = result.matches[0];
    if (std::hypot(m.center_x - place.x, m.center_y - place.y) > 3) continue;  // the background resembles it
    ++found;
    for (const auto& [error, sigma] :
         {std::pair{m.center_x - place.x, m.sigma_x}, std::pair{m.center_y - place.y, m.sigma_y},
          std::pair{std::remainder(m.rotation_deg - place.degrees, 360), m.sigma_rotation_deg}}) {
      squares += error * error / (sigma * sigma);
      worst = std::max(worst, std::abs(error) / sigma);
    }
  }
  EXPECT_GE(found, 25);
  EXPECT_LT(std::sqrt(squares / (3 * found)), 1.3);
  EXPECT_LT(worst, 4.5);
}

/// Pixels of which `strong` have a gradient along x or y, all with noise in both gradients and the residual.
match::FittedPixels noisy_pixels(int strong, std::mt19937& random) {
  constexpr int kSide = 24, kStep = 23;  // the strong ones lie in many groups
  std::normal_distribution<double> noise(0, 1);
  const auto with = [&](double value) { return static_cast<float>(value + noise(random)); };
  match::FittedPixels fitted;
  for (int k = 0; k < kSide * kSide; ++k) {
    const bool is_strong = k % kStep == 0 && k / kStep < strong;
    const double x = is_strong && k % 2 == 0 ? 40 : 0, y = is_strong && k % 2 != 0 ? 40 : 0;
    fitted.pixels.push_back({.xi = static_cast<float>(k % kSide - kSide / 2),
                             .eta = static_cast<float>(k / kSide - kSide / 2),
                             .t = static_cast<float>(k % 5),
                             .tx = with(x),
                             .ty = with(y),
                             .ix = with(x),
                             .iy = with(y),
                             .residual = with(0),
                             .weight = 1});
  }
  return fitted;
}

TEST(Pose, FewStrongPixelsDetermineAMotionAndNoiseDoesNot) {
  std::mt19937 random(5);
  constexpr int kStrong = 24, kTimes = 100;
  double variance = 0;
  int loose = 0;
  for (int k = 0; k < kTimes; ++k) {
    const auto strong = match::scatter_of(noisy_pixels(kStrong, random), pose::Freedom::shift, 17);
    ASSERT_TRUE(strong);
    EXPECT_TRUE(strong->loose.empty());
    variance += strong->covariance(0, 0) / kTimes;
    const auto blank = match::scatter_of(noisy_pixels(0, random), pose::Freedom::shift, 17);
    ASSERT_TRUE(blank);
    loose += !blank->loose.empty();
  }
  // Least squares: noise of 1 over twelve gradients of 40.
  const double expected = 1 / std::sqrt(12 * 40.0 * 40);
  EXPECT_NEAR(std::sqrt(variance), expected, 0.25 * expected);
  EXPECT_GE(loose, 98);
}

TEST(Pose, SumsOfProductsAreThoseOfPlainLoops) {
  constexpr int kRows = 5, kColumns = 9, kPairs = 3, kPixels = 128;
  std::mt19937 random(3);
  std::normal_distribution<float> value(1, 4);
  std::vector<float> rows(kColumns * kPixels), weights(kPixels), coefficients(2 * kPairs * kColumns);
  for (auto* values : {&rows, &weights, &coefficients})
    std::ranges::generate(*values, [&] { return value(random); });
  const match::WeightedRows of{rows.data(), kPixels, weights.data(), kPixels};
  std::vector<double> products(kRows * kColumns);
  match::weighted_products(of, kRows, kColumns, products.data());
  const auto at = [&](int row, int k) { return static_cast<double>(rows[row * kPixels + k]); };
  for (int a = 0; a < kRows; ++a)
    for (int b = 0; b < kColumns; ++b) {
      double sum = 0;
      for (int k = 0; k < kPixels; ++k) sum += weights[k] * at(a, k) * at(b, k);
      EXPECT_NEAR(products[a * kColumns + b], sum, 0.01) << a << ", " << b;
    }
  std::vector<double> squares(kPairs, 7), differences(kPairs, 8);  // sums are added
  match::add_squared_products(of, kColumns, coefficients.data(), kPairs, squares.data(), differences.data());
  for (int pair = 0; pair < kPairs; ++pair) {
    double of_products = 7, of_differences = 8;
    for (int k = 0; k < kPixels; ++k) {
      double a = 0, b = 0;
      for (int row = 0; row < kColumns; ++row) {
        a += static_cast<double>(coefficients[pair * kColumns + row]) * at(row, k);
        b += static_cast<double>(coefficients[(kPairs + pair) * kColumns + row]) * at(row, k);
      }
      of_products += std::pow(weights[k] * a * b, 2),
          of_differences += std::pow(weights[k] * (a * a - b * b) / 2, 2);
    }
    EXPECT_NEAR(squares[pair] / of_products, 1, 1e-5);
    EXPECT_NEAR(differences[pair] / of_differences, 1, 1e-5);
  }
}

/// A thin cross at the origin, from 0 to 1.
double cross_at(double xi, double eta) {
  const double a = std::abs(xi), b = std::abs(eta);
  const double thin = std::min(a, b), along = std::max(a, b);
  return std::exp(-thin * thin / 0.72) / (1 + std::exp((along - 4) / 0.4));
}

/// Thin crosses on an even ground: few pixels have all of the contrast.
double crosses(double xi, double eta) {
  return 150 - 120 * (cross_at(xi + 14, eta + 8) + cross_at(xi - 11, eta + 12) + cross_at(xi - 6, eta - 12));
}

TEST(Pose, SparseMarksAreMeasuredAsSigmasSay) {
  const auto scene_of = [](const Place& p, int width, int height, unsigned seed) {
    Image image({width, height}, ScalarType::u8);
    const double c = std::cos(p.degrees * kDegree), s = std::sin(p.degrees * kDegree);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(
            std::lround(crosses(c * (x - p.x) + s * (y - p.y), c * (y - p.y) - s * (x - p.x))));
    return with_noise(std::move(image), 1, seed);
  };
  const Image wanted = scene_of({.x = 31.5, .y = 31.5}, 64, 64, 1);
  for (unsigned k = 0; k < 8; ++k) {
    SCOPED_TRACE(k);
    const Place place{.x = 130.1 + 7.3 * k, .y = 110.4 + 2.6 * k, .degrees = 47.0 * k - 170};
    const MatchResult result = find_one(wanted, scene_of(place, kWidth, kHeight, 10 + k), any_angle());
    ASSERT_EQ(result.matches.size(), 1U);
    const Match& m = result.matches[0];
    expect_at(m, place, 0.04, 0.15, 0);
    EXPECT_LT(std::abs(m.center_x - place.x), 4.5 * m.sigma_x);
    EXPECT_LT(std::abs(m.center_y - place.y), 4.5 * m.sigma_y);
  }
}

TEST(Pose, AHiddenMarkCountsByItsContrast) {
  // One of three equal crosses is missing: a hundredth of the pixels, a third of the contrast. The two that
  // are left are the same turned by 180 degrees.
  const auto scene_of = [](const std::vector<std::array<double, 2>>& marks, const Place& p, int width,
                           int height, unsigned seed) {
    Image image({width, height}, ScalarType::u8);
    const double c = std::cos(p.degrees * kDegree), s = std::sin(p.degrees * kDegree);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        double grey = 150;
        for (const auto& [xi, eta] : marks)
          grey -= 120 * cross_at(c * (x - p.x) + s * (y - p.y) - xi, c * (y - p.y) - s * (x - p.x) - eta);
        image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::lround(grey));
      }
    return with_noise(std::move(image), 1, seed);
  };
  const std::vector<std::array<double, 2>> two = {{-14, -8}, {11, -12}},
                                           three = {{-14, -8}, {11, -12}, {6, 12}};
  const Image wanted = scene_of(three, {.x = 31.5, .y = 31.5}, 64, 64, 1);
  const Place place{.x = 150.2, .y = 110.7, .degrees = 33};
  const MatchResult whole = find_one(wanted, scene_of(three, place, kWidth, kHeight, 2), any_angle());
  const MatchResult hidden = find_one(wanted, scene_of(two, place, kWidth, kHeight, 2), any_angle());
  ASSERT_EQ(whole.matches.size(), 1U);
  EXPECT_GT(whole.matches[0].score, 0.9);
  ASSERT_EQ(hidden.matches.size(), 1U);
  EXPECT_NEAR(hidden.matches[0].score, std::sqrt(2.0 / 3), 0.06);
}

/// A disc of a texture, a fifth of which a disc of another texture hides, before a third one.
struct HiddenDisc {
  static constexpr int kSide = 61, kScene = 160;
  static constexpr double kRadius = 30;
  Place place;
  Image wanted{{kSide, kSide}, ScalarType::u8}, mask = wanted, image{{kScene, kScene}, ScalarType::u8};

  explicit HiddenDisc(unsigned seed) {
    const auto texture = [&](int side, unsigned k) { return Speckle(side, side, 4, 3 * seed + k); };
    const Speckle part = texture(kSide, 0), cover = texture(kSide, 1), background = texture(kScene, 2);
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 2);
    std::uniform_real_distribution<double> uniform(-1, 1);
    place.x = 80 + 6 * uniform(random), place.y = 80 + 6 * uniform(random);
    place.degrees = 180 * uniform(random);
    const double direction = std::numbers::pi * uniform(random), away = 1.36 * kRadius;
    const double cover_x = place.x + away * std::cos(direction),
                 cover_y = place.y + away * std::sin(direction);
    const auto grey = [&](double value) {
      return static_cast<std::uint8_t>(std::lround(std::clamp(128 + 32 * value + noise(random), 0.0, 255.0)));
    };
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) {
        wanted.row<std::uint8_t>(y)[x] = grey(part.at(x, y));
        mask.row<std::uint8_t>(y)[x] = std::hypot(x - kRadius, y - kRadius) < kRadius - 1 ? 255 : 0;
      }
    const double c = std::cos(place.degrees * kDegree), s = std::sin(place.degrees * kDegree);
    for (int y = 0; y < kScene; ++y)
      for (int x = 0; x < kScene; ++x) {
        const double xi = c * (x - place.x) + s * (y - place.y), eta = c * (y - place.y) - s * (x - place.x);
        const double over_x = x - cover_x, over_y = y - cover_y;
        double value = background.at(x, y);
        if (std::hypot(xi, eta) < kRadius) value = part.at(xi + kRadius, eta + kRadius);
        if (std::hypot(over_x, over_y) < kRadius) value = cover.at(over_x + kRadius, over_y + kRadius);
        image.row<std::uint8_t>(y)[x] = grey(value);
      }
  }
};

TEST(Pose, StepsGoOnWhereACoverResemblesAPart) {
  // On the way from a pose at which more pixels fit, and all of them worse, those of the cover lose their
  // weight.
  for (const unsigned seed : {86U, 489U}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const HiddenDisc disc(seed);
    const MatchResult result = find_one(disc.wanted, disc.image, any_angle(), disc.mask);
    ASSERT_EQ(result.matches.size(), 1U);
    expect_at(result.matches[0], disc.place, 0.15, 0.2, 0);
  }
}

/// A grey part with one dark disc, which alone does not tell the angle.
double disc_part(double xi, double eta) {
  return 140 - 100 / (1 + std::exp((std::hypot(xi + 17, eta + 10) - 5) / 0.6));
}

Image disc_template() {
  Image image({kTemplateWidth, kTemplateHeight}, ScalarType::u8);
  for (int y = 0; y < kTemplateHeight; ++y)
    for (int x = 0; x < kTemplateWidth; ++x)
      image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(
          std::lround(disc_part(x - (kTemplateWidth - 1) / 2.0, y - (kTemplateHeight - 1) / 2.0)));
  return with_noise(std::move(image), 1, 5);
}

/// The part in front of a texture, or of its own grey.
Image disc_scene(const Place& p, bool has_texture, unsigned seed) {
  const Speckle background(kWidth, kHeight, 3, seed);
  Image image({kWidth, kHeight}, ScalarType::u8);
  const double c = std::cos(p.degrees * kDegree), s = std::sin(p.degrees * kDegree);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const double xi = c * (x - p.x) + s * (y - p.y), eta = c * (y - p.y) - s * (x - p.x);
      const bool is_part = std::abs(xi) <= kTemplateWidth / 2.0 && std::abs(eta) <= kTemplateHeight / 2.0;
      const double grey = is_part ? disc_part(xi, eta) : 140 + (has_texture ? 40 * background.at(x, y) : 0);
      image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::lround(std::clamp(grey, 0.0, 255.0)));
    }
  return with_noise(std::move(image), 2, seed);
}

TEST(Pose, SigmasOfADiscCoverItsPose) {
  const Image wanted = disc_template();
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const Place place{.x = 120.0 + 11 * seed, .y = 110.5, .degrees = 55.0 * seed - 180};
    const MatchResult result = find_one(wanted, disc_scene(place, true, seed), any_angle());
    ASSERT_EQ(result.matches.size(), 1U) << seed;
    const Match& match = result.matches[0];
    expect_at(match, place, 4, 12, 0);  // the surroundings tell the angle
    EXPECT_LT(std::abs(match.center_x - place.x), 4 * match.sigma_x) << seed;
    EXPECT_LT(std::abs(match.center_y - place.y), 4 * match.sigma_y) << seed;
    EXPECT_LT(std::abs(std::remainder(match.rotation_deg - place.degrees, 360)), 4 * match.sigma_rotation_deg)
        << seed;
  }
}

TEST(Pose, APoseThatNothingTellsIsNoPromise) {
  // The angle is open, and with it the centre, which is far from the disc: no match, or sigmas that say so.
  const Image wanted = disc_template();
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const Place place{.x = 120.0 + 11 * seed, .y = 110.5, .degrees = 70.0 * seed};
    for (const Match& match : find_one(wanted, disc_scene(place, false, seed), any_angle()).matches) {
      EXPECT_GT(match.sigma_rotation_deg, 10);
      EXPECT_GT(std::hypot(match.sigma_x, match.sigma_y), 3);
    }
  }
}

/// Darkness of a shape in template coordinates, from 0 to 1.
using Shape = std::function<double(double xi, double eta)>;

double soft(double inside) { return 1 / (1 + std::exp(-inside / 0.6)); }

double whole_ring(double xi, double eta) {
  const double radius = std::hypot(xi, eta);
  return soft(std::min(radius - 30, 40 - radius));
}
double ring_with_gap(double xi, double eta) {
  return std::min(whole_ring(xi, eta), eta > 0 ? soft(std::abs(xi) - 13) : 1);
}
double mark(double xi, double eta) {
  return soft(std::min({eta + 18, 18 - eta - 0.3 * xi, xi + 22, 15 - xi + 0.4 * eta}));
}

/// Grey levels of an empty area and of shapes in front of it.
struct Light {
  double empty, shape;
};

constexpr int kShapeSide = 96;

Image shape_template(const Shape& shape, const Light& light, double noise) {
  Image image({kShapeSide, kShapeSide}, ScalarType::u8);
  constexpr double kMiddle = (kShapeSide - 1) / 2.0;
  for (int y = 0; y < kShapeSide; ++y)
    for (int x = 0; x < kShapeSide; ++x)
      image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::lround(std::clamp(
          light.empty + (light.shape - light.empty) * shape(x - kMiddle, y - kMiddle), 0.0, 255.0)));
  return with_noise(std::move(image), noise, 3);
}

/// Shapes and a bar in an empty area.
Image shape_scene(const Shape& shape, const std::vector<Place>& places, const Light& light, double noise) {
  Image image({kWidth, kHeight}, ScalarType::u8);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      double dark = x >= 260 && x < 274 && y >= 40 && y < 190 ? 1 : 0;
      for (const Place& p : places) {
        const double c = std::cos(p.degrees * kDegree), s = std::sin(p.degrees * kDegree);
        dark = std::max(dark, shape(c * (x - p.x) + s * (y - p.y), c * (y - p.y) - s * (x - p.x)));
      }
      image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(
          std::lround(std::clamp(light.empty + (light.shape - light.empty) * dark, 0.0, 255.0)));
    }
  return with_noise(std::move(image), noise, 4);
}

TEST(Pose, TheEmptyAreaAroundAPartIsNotThePart) {
  // Most pixels of the template are as empty as most of the scene: they fit everywhere.
  const std::vector<Place> places = {{.x = 170, .y = 170, .degrees = -120},
                                     {.x = 80, .y = 70, .degrees = 33}};
  constexpr double kNoise = 1.5;
  for (const Light& light : {Light{245, 20}, {300, 60}, {8, 225}, {150, 110}})
    for (const Shape& shape : {Shape(ring_with_gap), Shape(mark)}) {
      SCOPED_TRACE(std::to_string(light.empty));
      const MatchResult result = find_one(shape_template(shape, light, kNoise),
                                          shape_scene(shape, places, light, kNoise), any_angle(8));
      ASSERT_EQ(result.matches.size(), places.size());
      for (const Place& p : places) {
        const auto near = std::ranges::min_element(result.matches, {}, [&](const Match& m) {
          return std::hypot(m.center_x - p.x, m.center_y - p.y);
        });
        expect_at(*near, p, 0.1, 0.5, 0);
        EXPECT_LT(near->sigma_x, 0.3);
      }
    }
}

TEST(Pose, AStraightEdgeIsNoPartOfBars) {
  // The edge in a corner of the template, or its two edges, fit all along the edges of the bars.
  const auto corner = [](double xi, double eta) { return soft(-(0.6 * xi + 0.8 * eta) - 50); };
  const auto band = [](double xi, double eta) {
    const double across = -(0.6 * xi + 0.8 * eta);
    return std::min(soft(across - 40), soft(52 - across));
  };
  for (const Light& light : {Light{110, 200}, {200, 60}})
    for (const Shape& shape : {Shape(corner), Shape(band)}) {
      Image bars({kWidth, kHeight}, ScalarType::u8);
      for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x)
          bars.row<std::uint8_t>(y)[x] =
              static_cast<std::uint8_t>(x / 90 % 2 == 1 ? light.shape : light.empty);
      MatchOptions options = any_angle(6);
      options.threshold = 0.6;
      const MatchResult result =
          find_one(shape_template(shape, light, 1), with_noise(std::move(bars), 1.5, 4), options);
      EXPECT_TRUE(result.matches.empty()) << light.empty;
    }
}

TEST(Pose, DimPartsInABrightSceneAreFound) {
  // At the coarsest level, what lies around a part has far more contrast than the part.
  const Image wanted = part_image();
  for (const double gain : {6.0, 9.0}) {
    SCOPED_TRACE(gain);
    const Place place{.x = 150.3, .y = 110.8, .degrees = 130, .gain = gain};
    const MatchResult result = find_one(wanted, with_noise(scene({place}, 55), 1, 9), any_angle(3));
    ASSERT_EQ(result.matches.size(), 1U);
    expect_at(result.matches[0], place, 0.06, 0.15, 0);
  }
}

TEST(Pose, ARoundPartIsFoundAtAnyAngle) {
  const Light light{230, 40};
  const Place place{.x = 120.3, .y = 110.6};
  const MatchResult result = find_one(shape_template(whole_ring, light, 1),
                                      shape_scene(whole_ring, {place}, light, 2), any_angle(3));
  ASSERT_EQ(result.matches.size(), 1U);
  EXPECT_NEAR(result.matches[0].center_x, place.x, 0.02);
  EXPECT_NEAR(result.matches[0].center_y, place.y, 0.02);
  EXPECT_LT(result.matches[0].sigma_x, 0.2);
  EXPECT_GT(result.matches[0].sigma_rotation_deg, 20);
}

TEST(Pose, OneOfSeveralOpenMotionsTurns) {
  constexpr double kRim = 30;
  using Motion = match::PoseScatter::Vector;
  const auto motion = [](double x, double y, double turn) {
    return Motion{{x, y, turn}}.normalized().eval();
  };
  // A slide along (0.6, 0.8) and a turn about (10, 5), mixed.
  const Motion slide = motion(0.6, 0.8, 0);
  Motion turn = motion(5 / kRim, -10 / kRim, 1);
  turn -= turn.dot(slide) * slide;
  turn.normalize();
  std::vector<Motion> loose = {(slide + turn) / std::sqrt(2), (slide - turn) / std::sqrt(2)};
  match::separate_turn(loose, pose::Freedom::rotation, kRim);
  ASSERT_EQ(loose.size(), 2U);
  EXPECT_NEAR(std::abs(loose[0].dot(turn)), 1, 1e-9);
  EXPECT_NEAR(std::abs(loose[1].dot(slide)), 1, 1e-9);
  const pose::Warp warp = pose::similarity(100, 80, 0.5, 1);
  const pose::Warp moved = match::moved_along(warp, slide, pose::Freedom::rotation, kRim, 2);
  EXPECT_NEAR(std::hypot(moved.center_x - warp.center_x, moved.center_y - warp.center_y), 2, 1e-9);
}

TEST(Pose, ResultsDoNotDependOnTheNumberOfLevels) {
  const Place place{.x = 150.3, .y = 110.8, .degrees = 33.3, .scale = 1.01};
  const Image image = scene({place}), wanted = part_image();
  // The smallest scale decides how often the template can be halved.
  for (const double least : {0.3, 0.5, 0.9}) {
    MatchOptions options = any_angle();
    options.scale_range = {least, 1.1};
    const MatchResult result = find_one(wanted, image, options);
    ASSERT_EQ(result.matches.size(), 1U) << least;
    expect_at(result.matches[0], place, 0.015, 0.03, 0.001);
  }
}

/// A grey level of a function whose standard deviation is about 1.
std::uint8_t grey_of(double value) {
  return static_cast<std::uint8_t>(std::lround(std::clamp(128 + 30 * value, 0.0, 255.0)));
}

// Reduced until few pixels are left, a fine texture has no contrast; not reduced, it has thousands of poses.
TEST(Pose, LargeFineTexturesAreFoundByTheirMiddle) {
  constexpr int kSide = 540, kScene = 800;
  const Speckle fine(kSide, kSide, 1, 9), around(kScene, kScene, 1, 10);
  Image wanted({kSide, kSide}, ScalarType::u8), image({kScene, kScene}, ScalarType::u8);
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) wanted.row<std::uint8_t>(y)[x] = grey_of(fine.at(x, y));
  const Place place{.x = 391.3, .y = 404.8, .degrees = 63.4};
  const double c = std::cos(place.degrees * kDegree), s = std::sin(place.degrees * kDegree);
  for (int y = 0; y < kScene; ++y)
    for (int x = 0; x < kScene; ++x) {
      const double xi = c * (x - place.x) + s * (y - place.y), eta = c * (y - place.y) - s * (x - place.x);
      const double half = kSide / 2.0;
      const bool is_part = std::abs(xi) <= half && std::abs(eta) <= half;
      image.row<std::uint8_t>(y)[x] =
          grey_of(is_part ? fine.at(xi + half - 0.5, eta + half - 0.5) : around.at(x, y));
    }

  core::ThreadPool pool(2);
  const match::PoseTemplate made(match::make_template(wanted, {}), 1, pool);
  const match::TemplateLevel& top = made.level(made.top());
  EXPECT_LT(made.image_level(made.top()), made.top());
  EXPECT_LT(std::max(top.values.width, top.values.height), 60);
  EXPECT_NEAR(top.center_x, (top.values.width - 1) / 2.0, 1);  // the middle of the template

  const MatchResult result = find_one(wanted, image, any_angle());
  ASSERT_EQ(result.matches.size(), 1U);
  expect_at(result.matches[0], place, 0.005, 0.001, 1e-12);
}

TEST(Pose, PolarityMayBeIgnored) {
  const Place place{.x = 150.3, .y = 110.8, .degrees = 50, .gain = -30};
  const Image image = scene({place}), wanted = part_image();
  MatchOptions options = any_angle();
  options.threshold = 0.8;
  EXPECT_TRUE(find_one(wanted, image, options).matches.empty());
  options.ignore_polarity = true;
  const MatchResult result = find_one(wanted, image, options);
  ASSERT_EQ(result.matches.size(), 1U);
  expect_at(result.matches[0], place, 0.015, 0.03, 0);
}

TEST(Pose, MasksOfImagesHideParts) {
  const std::vector<Place> places = {{80.2, 110.4, 12, 1}, {230.5, 120.6, 100, 1}};
  const Image image = scene(places), wanted = part_image();
  Image mask = constant_image(kWidth, kHeight, 1);
  for (int y = 0; y < kHeight; ++y) std::fill_n(mask.row<std::uint8_t>(y), 150, 0);
  const ImageView view = wanted;
  MatchOptions options = any_angle(2);
  options.threshold = 0.8;
  Matcher matcher({&view, 1}, options);
  EXPECT_EQ(matcher.find(image).matches.size(), 2U);
  const MatchResult result = matcher.find(image, {}, mask);
  ASSERT_EQ(result.matches.size(), 1U);
  expect_at(result.matches[0], places[1], 0.015, 0.03, 0);
}

TEST(Pose, TracksFollowTheLastPose) {
  const Image wanted = part_image();
  const ImageView view = wanted;
  Matcher matcher({&view, 1}, any_angle());
  TemplateTracker tracker(matcher);
  for (int k = 0; k < 4; ++k) {
    const Place place{.x = 120.3 + 5.2 * k, .y = 100.1 + 3.1 * k, .degrees = 170 + 4.0 * k};
    const auto tracked = tracker.next(scene({place}));
    ASSERT_EQ(tracked.size(), 1U);
    ASSERT_TRUE(tracked[0].match);
    expect_at(*tracked[0].match, place, 0.03, 0.06, 0);
    EXPECT_NEAR(tracked[0].dx, 5.2 * k, 0.05);
  }
}

TEST(Pose, CancellationAndTimeoutsEndASearch) {
  const Image image = scene({{.x = 150.3, .y = 110.8, .degrees = 50}}), wanted = part_image();
  const ImageView view = wanted;
  std::stop_source stop;
  stop.request_stop();
  Matcher matcher({&view, 1}, any_angle());
  EXPECT_THROW(matcher.find(image, stop.get_token()), Cancelled);
  EXPECT_THROW(Matcher({&view, 1}, cpu_options()).find(image, stop.get_token()), Cancelled);
}

TEST(Pose, ATimeoutReturnsWhatWasFound) {
  const Image wanted = part_image();
  const Image image = render(Speckle(1600, 1200, 4, 3), 1600, 1200, ScalarType::u8, 128, 30);
  MatchOptions options = any_angle();
  options.scale_range = {0.5, 2};
  options.timeout_ms = 1;
  const MatchResult result = find_one(wanted, image, options);
  EXPECT_TRUE(result.timed_out);
  options.timeout_ms = 1'000'000;
  EXPECT_FALSE(find_one(wanted, scene({{.x = 150, .y = 110}}), options).timed_out);
}

TEST(Pose, PixelsOutsideAMaskDoNotCount) {
  const Place place{.x = 150.3, .y = 110.8, .degrees = 140};
  const Image image = scene({place});
  Image wanted = part_image(), mask = constant_image(kTemplateWidth, kTemplateHeight, 255);
  for (int y = 0; y < kTemplateHeight; ++y)
    for (int x = 0; x < kTemplateWidth; ++x)
      if (std::hypot(x - 27.5, y - 21.5) > 21)
        wanted.row<std::uint8_t>(y)[x] = 0, mask.row<std::uint8_t>(y)[x] = 0;
  const ImageView view = wanted, counts = mask;
  Matcher matcher({&view, 1}, any_angle(), {&counts, 1});
  const MatchResult result = matcher.find(image);
  ASSERT_EQ(result.matches.size(), 1U);
  expect_at(result.matches[0], place, 0.02, 0.05, 0);
  EXPECT_GT(result.matches[0].visible, 0.95);
}

TEST(Pose, WrongRangesAreRefused) {
  MatchOptions options = any_angle();
  EXPECT_TRUE(options.validate().empty());
  options.rotation_range = {10, -10};
  EXPECT_EQ(options.validate().size(), 1U);
  options = any_angle();
  options.scale_range = {0, 1};
  EXPECT_EQ(options.validate().size(), 1U);
  options = any_angle();
  options.method = Criterion::ssd;
  EXPECT_EQ(options.validate().size(), 1U);
  options = cpu_options();
  options.affine = true;
  EXPECT_EQ(options.validate().size(), 1U);
}

}  // namespace
}  // namespace dic
