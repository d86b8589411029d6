#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <dic/error.hpp>
#include <dic/match.hpp>
#include <numbers>
#include <random>
#include <stop_token>
#include <thread>

#include "match/box.hpp"
#include "match/candidates.hpp"
#include "support/match_support.hpp"

// Tests template matching: copies, masks, rotations and scales, bit depths, wrong arguments.
namespace dic {
namespace {

using namespace test;

template <typename Call>
std::string usage_message(Call&& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

TEST(Match, RefusesPixelsThatCannotBeRead) {
  const Image image = noise_image(60, 50, 8);
  ImageView none = image, overlapping = image;
  none.data = nullptr;
  overlapping.row_bytes = 30;
  const ImageView view = crop(image, 10, 10, 20, 20);
  Matcher matcher({&view, 1}, cpu_options());
  for (const ImageView& bad : {none, overlapping}) {
    EXPECT_THROW(matcher.find(bad), UsageError);
    EXPECT_THROW(Matcher({&bad, 1}, cpu_options()), UsageError);
  }
  EXPECT_THROW(matcher.find_template(1, image), UsageError);
  EXPECT_EQ(matcher.find(image).matches.size(), 1U);
}

TEST(Match, NothingIsFoundInAFlatImage) {
  const Image noise = noise_image(20, 20, 8);
  const MatchResult result = find_one(noise, constant_image(60, 50, 77), cpu_options());
  EXPECT_TRUE(result.matches.empty());
  EXPECT_EQ(result.best_score, 0);
}

TEST(Match, FindsAFaintPatternAtFullScore) {
  const Speckle speckle(80, 80, 2, 21);
  const Image image = render(speckle, 80, 80, ScalarType::u16, 60000, 3);
  const MatchResult result = find_one(crop(image, 22, 31, 20, 20), image, cpu_options());
  ASSERT_EQ(result.matches.size(), 1U);
  EXPECT_NEAR(result.matches[0].score, 1, 1e-6);
  EXPECT_NEAR(result.matches[0].x, 22, 0.01);
  EXPECT_NEAR(result.matches[0].y, 31, 0.01);
}

/// ZNCC from its definition.
double naive_zncc(ImageView wanted, ImageView image, int x, int y) {
  double f_sum = 0, g_sum = 0;
  const int n = wanted.width * wanted.height;
  for (int j = 0; j < wanted.height; ++j)
    for (int i = 0; i < wanted.width; ++i) {
      f_sum += wanted.row<std::uint8_t>(j)[i];
      g_sum += image.row<std::uint8_t>(y + j)[x + i];
    }
  double ff = 0, gg = 0, fg = 0;
  for (int j = 0; j < wanted.height; ++j)
    for (int i = 0; i < wanted.width; ++i) {
      const double f = wanted.row<std::uint8_t>(j)[i] - f_sum / n,
                   g = image.row<std::uint8_t>(y + j)[x + i] - g_sum / n;
      ff += f * f;
      gg += g * g;
      fg += f * g;
    }
  return fg / std::sqrt(ff * gg);
}

TEST(Match, ScoreIsTheZnccNearTheBestWholePixel) {
  const Speckle speckle(90, 80, 2.5, 4);
  Image image = render(speckle, 90, 80, ScalarType::u8, 120, 40);
  const Image wanted = render(speckle, 25, 20, ScalarType::u8, 60, 20, [](double x, double y) {
    return std::array{x + 31.1, y + 42.1};
  });
  const Image noise = noise_image(90, 80, 9);
  for (int y = 0; y < 80; ++y)
    for (int x = 0; x < 90; ++x) image.row<std::uint8_t>(y)[x] += noise.row<std::uint8_t>(y)[x] / 8;
  const MatchResult result = find_one(wanted, image, cpu_options());
  ASSERT_EQ(result.matches.size(), 1U);
  double best = -1;
  int best_x = 0, best_y = 0;
  for (int y = 0; y <= 60; ++y)
    for (int x = 0; x <= 65; ++x)
      if (const double score = naive_zncc(wanted, image, x, y); score > best)
        best = score, best_x = x, best_y = y;
  EXPECT_EQ(std::lround(result.matches[0].x), best_x);
  EXPECT_EQ(std::lround(result.matches[0].y), best_y);
  EXPECT_GE(result.matches[0].score, best - 1e-6);
  EXPECT_LE(result.matches[0].score, best + 0.05);
  EXPECT_EQ(result.best_score, result.matches[0].score);
}

TEST(Match, FindsEveryCopyOnceBestFirst) {
  const Speckle speckle(30, 30, 1.7, 6);
  const Image wanted = render(speckle, 24, 18, ScalarType::u8, 110, 30);
  Image image = noise_image(200, 150, 3);
  const std::vector<std::pair<int, int>> places = {{3, 4}, {60, 20}, {120, 100}, {170, 125}};
  std::mt19937 random(2);
  for (std::size_t k = 0; k < places.size(); ++k)
    for (int j = 0; j < 18; ++j)
      for (int i = 0; i < 24; ++i) {
        const int disturbance = static_cast<int>(random() % (1 + 20 * k));
        image.row<std::uint8_t>(places[k].second + j)[places[k].first + i] =
            static_cast<std::uint8_t>(wanted.row<std::uint8_t>(j)[i] + disturbance);
      }
  MatchOptions options = cpu_options();
  options.max_matches = 10;
  const MatchResult result = find_one(wanted, image, options);
  ASSERT_EQ(result.matches.size(), places.size());
  for (std::size_t k = 0; k < places.size(); ++k) {
    EXPECT_NEAR(result.matches[k].x, places[k].first, 0.3);
    EXPECT_NEAR(result.matches[k].y, places[k].second, 0.3);
    if (k > 0) {
      EXPECT_LE(result.matches[k].score, result.matches[k - 1].score);
    }
  }
  options.max_matches = 2;
  EXPECT_EQ(find_one(wanted, image, options).matches.size(), 2U);
  options.max_matches = 10;
  options.threshold = 0.999;
  EXPECT_EQ(find_one(wanted, image, options).matches.size(), 1U);
}

TEST(Match, ReportsWhichTemplateInWhichImage) {
  const Image first = noise_image(60, 60, 31), second = noise_image(70, 50, 32);
  const std::vector<ImageView> templates = {crop(first, 10, 20, 16, 16), crop(second, 33, 7, 12, 20)};
  const std::vector<ImageView> images = {first, second};
  const MatchResult result = match_templates(templates, images, cpu_options());
  ASSERT_EQ(result.matches.size(), 2U);
  for (const Match& match : result.matches) {
    EXPECT_EQ(match.image, match.template_index);
    EXPECT_NEAR(match.x, match.image == 0 ? 10 : 33, 1e-3);
    EXPECT_NEAR(match.y, match.image == 0 ? 20 : 7, 1e-3);
  }
}

TEST(Match, MaskedPixelsDoNotCount) {
  const Speckle speckle(100, 90, 1.7, 14);
  const Image image = render(speckle, 100, 90, ScalarType::u8, 120, 40);
  Image wanted({30, 26}, ScalarType::u8), mask({30, 26}, ScalarType::u8);
  const Image garbage = noise_image(30, 26, 77);
  for (int y = 0; y < 26; ++y)
    for (int x = 0; x < 30; ++x) {
      const bool inside = std::hypot(x - 14.5, y - 12.5) < 11;
      mask.row<std::uint8_t>(y)[x] = inside ? 255 : 0;
      wanted.row<std::uint8_t>(y)[x] =
          (inside ? image : garbage).row<std::uint8_t>(inside ? y + 40 : y)[inside ? x + 50 : x];
    }
  for (const Criterion method : {Criterion::zncc, Criterion::ncc, Criterion::ssd}) {
    MatchOptions options = cpu_options();
    options.method = method;
    const MatchResult masked = find_one(wanted, image, options, mask);
    ASSERT_EQ(masked.matches.size(), 1U) << to_string(method);
    EXPECT_NEAR(masked.matches[0].score, 1, 1e-6);
    EXPECT_NEAR(masked.matches[0].x, 50, 1e-3);
    EXPECT_NEAR(masked.matches[0].y, 40, 1e-3);
    EXPECT_LT(find_one(wanted, image, options).best_score, 0.98);
  }
}

/// An image that shows the material point p at where + scale * R(angle) p.
Image turned_image(const Speckle& speckle, std::array<double, 2> where, double angle_deg, double scale) {
  const double angle = angle_deg * std::numbers::pi / 180, c = std::cos(angle) / scale,
               s = std::sin(angle) / scale;
  return render(speckle, 160, 150, ScalarType::u8, 128, 45, [=](double x, double y) {
    x -= where[0];
    y -= where[1];
    return std::array{c * x + s * y, -s * x + c * y};
  });
}

TEST(Match, FindsATurnedTemplate) {
  const Speckle speckle(100, 100, 2, 17);
  const Image wanted = render(speckle, 40, 30, ScalarType::u8, 128, 45);
  MatchOptions options = cpu_options();
  for (const double angle : {7.0, -30.0, 90.0, 170.0}) {
    const std::array<double, 2> where = {80.3, 70.6};
    options.rotations = {angle - 2, angle - 1, angle, angle + 1, angle + 2};
    const MatchResult result = find_one(wanted, turned_image(speckle, where, angle, 1), options);
    ASSERT_EQ(result.matches.size(), 1U) << angle;
    EXPECT_EQ(result.matches[0].rotation_deg, angle);
    EXPECT_NEAR(result.matches[0].x, where[0], 0.01) << angle;
    EXPECT_NEAR(result.matches[0].y, where[1], 0.01) << angle;
    EXPECT_GT(result.matches[0].score, 0.999) << angle;
    const double radians = angle * std::numbers::pi / 180, c = std::cos(radians), s = std::sin(radians);
    EXPECT_NEAR(result.matches[0].center_x, where[0] + c * 19.5 - s * 14.5, 0.01);
    EXPECT_NEAR(result.matches[0].center_y, where[1] + s * 19.5 + c * 14.5, 0.01);
  }
}

TEST(Match, FindsAScaledTemplate) {
  const Speckle speckle(100, 100, 3, 18);
  const Image wanted = render(speckle, 40, 30, ScalarType::u8, 128, 45);
  MatchOptions options = cpu_options();
  for (const double scale : {0.6, 0.9, 1.5}) {
    const std::array<double, 2> where = {50.4, 40.7};
    options.scales = {scale - 0.1, scale, scale + 0.1};
    const MatchResult result = find_one(wanted, turned_image(speckle, where, 0, scale), options);
    ASSERT_EQ(result.matches.size(), 1U) << scale;
    EXPECT_EQ(result.matches[0].scale, scale);
    EXPECT_NEAR(result.matches[0].x, where[0], 0.02) << scale;
    EXPECT_NEAR(result.matches[0].y, where[1], 0.02) << scale;
    EXPECT_GT(result.matches[0].score, 0.99) << scale;
  }
}

TEST(Match, RotationsOfOnePlaceAreOneMatch) {
  const Speckle speckle(100, 100, 2, 17);
  const Image wanted = render(speckle, 40, 30, ScalarType::u8, 128, 45);
  MatchOptions options = cpu_options();
  options.rotations = {-3, -2, -1, 0, 1, 2, 3};
  options.max_matches = 5;
  const MatchResult result = find_one(wanted, turned_image(speckle, {60, 50}, 1, 1), options);
  ASSERT_EQ(result.matches.size(), 1U);
  EXPECT_EQ(result.matches[0].rotation_deg, 1);
}

TEST(Match, ComparesImagesOfDifferentDepths) {
  const Speckle speckle(90, 80, 1.7, 23);
  const Image eight = render(speckle, 90, 80, ScalarType::u8, 120, 40);
  const Image sixteen = render(speckle, 90, 80, ScalarType::u16, 30840, 10280);
  const Image real = render(speckle, 90, 80, ScalarType::f32, 0.5, 0.1);
  for (const auto& [from, in] :
       {std::pair{&eight, &sixteen}, {&sixteen, &eight}, {&eight, &real}, {&real, &eight}}) {
    for (const Criterion method : {Criterion::zncc, Criterion::ncc}) {
      if (method == Criterion::ncc && (from == &real || in == &real))
        continue;  // images differ in the ratio of mean and contrast
      MatchOptions options = cpu_options();
      options.method = method;
      const MatchResult result = find_one(crop(*from, 31, 22, 20, 24), *in, options);
      ASSERT_EQ(result.matches.size(), 1U);
      EXPECT_NEAR(result.matches[0].x, 31, 0.01);
      EXPECT_NEAR(result.matches[0].y, 22, 0.01);
      EXPECT_GT(result.matches[0].score, 0.999);
    }
  }
  MatchOptions options = cpu_options();
  options.method = Criterion::ssd;
  EXPECT_EQ(usage_message([&] { find_one(crop(eight, 1, 1, 9, 9), sixteen, options); }),
            "ssd compares grey levels as they are, but the template is 8 bit and the image 16 bit; use zncc "
            "or ncc, "
            "or convert one of them.");
}

TEST(Match, SaysWhatIsWrong) {
  const Image image = noise_image(40, 30, 1), large = noise_image(41, 10, 1), flat = constant_image(9, 9, 7);
  const MatchOptions options = cpu_options();
  EXPECT_EQ(usage_message([&] { find_one(large, image, options); }),
            "Template 1 (41 x 10 px) does not fit into the image (40 x 30 px); take a smaller template or "
            "another scale.");
  EXPECT_NE(usage_message([&] { find_one(flat, image, options); }).find("same grey level everywhere"),
            std::string::npos);
  EXPECT_NE(usage_message([&] {
              find_one(crop(image, 0, 0, 9, 9), image, options, constant_image(8, 9, 1));
            }).find("same size"),
            std::string::npos);
  EXPECT_NE(usage_message([&] {
              find_one(crop(image, 0, 0, 9, 9), image, options, constant_image(9, 9, 0));
            }).find("zero everywhere"),
            std::string::npos);
  Image broken({9, 9}, ScalarType::f32);
  broken.row<float>(4)[4] = std::nanf("");
  EXPECT_NE(usage_message([&] { find_one(broken, image, options); }).find("NaN"), std::string::npos);
  MatchOptions extreme = options;
  extreme.scales = {0.01, 100};
  EXPECT_NE(usage_message([&] { find_one(crop(image, 0, 0, 9, 9), image, extreme); }).find("does not fit"),
            std::string::npos);
  MatchOptions wrong = options;
  wrong.max_matches = 0;
  wrong.threshold = std::nan("");
  wrong.scales = {0};
  wrong.rotations = {};
  EXPECT_EQ(wrong.validate().size(), 4U);
  EXPECT_THROW(find_one(crop(image, 0, 0, 9, 9), image, wrong), UsageError);
}

TEST(Match, CanBeCancelled) {
  const Image image = noise_image(40, 30, 1);
  const ImageView wanted = crop(image, 3, 3, 9, 9), view = image;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(match_templates({&wanted, 1}, {&view, 1}, cpu_options(), {}, stop.get_token()), Cancelled);
}

TEST(Match, StopsSoonAtAnyMoment) {
  const Image image = noise_image(2400, 1800, 1);
  const ImageView wanted = crop(image, 300, 300, 400, 300);
  MatchOptions options = cpu_options();
  options.max_matches = 20;
  options.rotations = {0, 5};  // the second one needs a mask
  // Processor time: other programs, which may slow this one down, do not lengthen it.
  const auto most =
      static_cast<std::clock_t>(CLOCKS_PER_SEC / 10 * std::max(1U, std::thread::hardware_concurrency()));
  for (int after_ms = 10;; after_ms += 60) {
    Matcher matcher({&wanted, 1}, options);
    std::stop_source stop;
    std::clock_t asked = 0;
    std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
      asked = std::clock();
      stop.request_stop();
    });
    try {
      matcher.find(image, stop.get_token());
      break;  // ended before
    } catch (const Cancelled&) {
      const std::clock_t ended = std::clock();
      other.join();
      EXPECT_LT(ended - asked, most) << "asked after " << after_ms << " ms";
    }
  }
}

TEST(Match, FaintSurroundingsDoNotHideMatches) {
  // Nearly all of the image is flat but for single grey levels: scores from transforms are uncertain there.
  const Image noise = noise_image(24, 20, 3);
  Image image = constant_image(300, 200, 120);
  std::mt19937 random(4);
  for (int y = 0; y < 200; ++y)
    for (int x = 0; x < 300; ++x) image.row<std::uint8_t>(y)[x] += random() % 40 == 0;
  const std::vector<std::array<int, 2>> places = {{10, 15}, {200, 30}, {120, 150}, {260, 170}};
  for (const auto& [left, top] : places)
    for (int y = 0; y < 20; ++y)
      std::copy_n(noise.row<std::uint8_t>(y), 24, image.row<std::uint8_t>(top + y) + left);
  MatchOptions options = cpu_options();
  options.max_matches = 100;
  options.threshold = 0.7;
  for (const char* variant : {"cpu-fft", "cpu-direct"}) {
    options.variant = variant;
    const MatchResult result = find_one(noise, image, options);
    ASSERT_EQ(result.matches.size(), places.size()) << variant;
    for (const auto& [left, top] : places)
      EXPECT_TRUE(std::ranges::any_of(
          result.matches,
          [&](const Match& m) { return std::hypot(m.x - left, m.y - top) < 1e-3 && m.score > 1 - 1e-6; }))
          << variant << ' ' << left << ' ' << top;
  }
}

}  // namespace
}  // namespace dic
