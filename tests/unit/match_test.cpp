#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/match.hpp>
#include <functional>
#include <numbers>
#include <random>

#include "match/box.hpp"
#include "match/candidates.hpp"

namespace dic {
namespace {

using Map = std::function<std::array<double, 2>(double, double)>;

/// A speckle of Gaussian blobs, evaluated wherever one asks: the truth that no interpolation has touched.
class Speckle {
 public:
  Speckle(int width, int height, double sigma, unsigned seed)
      : sigma_(sigma), columns_(cell(width + kMargin)), cells_(columns_ * cell(height + kMargin)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> x(-kMargin, width + kMargin), y(-kMargin, height + kMargin),
        grey(-1, 1);
    const double size = (width + 2 * kMargin) * (height + 2 * kMargin);
    for (int k = 0; k < size / (4 * sigma * sigma); ++k) {
      const Blob blob{x(random), y(random), grey(random)};
      cells_[(cell(blob.y) - 1) * columns_ + cell(blob.x) - 1].push_back(blob);
    }
  }

  double at(double x, double y) const {
    const int i = cell(x) - 1, j = cell(y) - 1, rows = static_cast<int>(cells_.size()) / columns_;
    double sum = 0;
    for (int row = std::max(j - 1, 0); row <= std::min(j + 1, rows - 1); ++row)
      for (int column = std::max(i - 1, 0); column <= std::min(i + 1, columns_ - 1); ++column)
        for (const Blob& blob : cells_[row * columns_ + column]) {
          const double d2 = (x - blob.x) * (x - blob.x) + (y - blob.y) * (y - blob.y);
          sum += blob.grey * std::exp(-d2 / (2 * sigma_ * sigma_));
        }
    return sum;
  }

 private:
  struct Blob {
    double x, y, grey;
  };
  static constexpr double kMargin = 10;

  /// Cells are 6 sigma wide: blobs two cells away cannot be seen. Counted from 1.
  int cell(double position) const {
    return 1 + static_cast<int>(std::floor(std::max(position + kMargin, 0.0) / (6 * sigma_)));
  }

  double sigma_;
  int columns_;
  std::vector<std::vector<Blob>> cells_;
};

/// TestImage whose pixel q shows the speckle at `material(q)`, grey levels mean +- amplitude or so.
Image render(
    const Speckle& speckle, int width, int height, ScalarType type, double mean, double amplitude,
    const Map& material = [](double x, double y) {
      return std::array{x, y};
    }) {
  Image image({width, height}, type);
  visit_scalar(type, [&]<typename T>(T) {
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const auto [mx, my] = material(x, y);
        const double grey = mean + amplitude * speckle.at(mx, my);
        image.row<T>(y)[x] = std::is_floating_point_v<T> ? static_cast<T>(grey)
                                                         : static_cast<T>(std::lround(std::max(grey, 0.0)));
      }
  });
  return image;
}

ImageView crop(const Image& image, int x, int y, int width, int height) {
  ImageView view = image;
  view.data = static_cast<const std::byte*>(view.data) + y * view.row_bytes +
              static_cast<std::ptrdiff_t>(x * size_of(view.type));
  view.width = width;
  view.height = height;
  return view;
}

Image noise_image(int width, int height, unsigned seed) {
  Image image({width, height}, ScalarType::u8);
  std::mt19937 random(seed);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(random() >> 24);
  return image;
}

Image constant_image(int width, int height, std::uint8_t grey) {
  Image image({width, height}, ScalarType::u8);
  for (int y = 0; y < height; ++y) std::fill_n(image.row<std::uint8_t>(y), width, grey);
  return image;
}

MatchOptions cpu_options() {
  MatchOptions options;
  options.device = "cpu";
  options.threads = 2;
  return options;
}

MatchResult find_one(ImageView wanted, ImageView image, const MatchOptions& options, ImageView mask = {}) {
  const std::span<const ImageView> masks(&mask, mask.empty() ? 0 : 1);
  return match_templates({&wanted, 1}, {&image, 1}, options, masks);
}

template <typename Call>
std::string usage_message(Call&& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

void expect_scores_in_range(const MatchResult& result) {
  for (const Match& match : result.matches) {
    EXPECT_GE(match.score, -1);  // false for NaN
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

INSTANTIATE_TEST_SUITE_P(Match, EveryMethod, testing::Values(Criterion::zncc, Criterion::ncc, Criterion::ssd),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

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

/// ZNCC straight from its definition.
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

/// An image in which the material at p is seen at where + scale * R(angle) p.
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
        continue;  // another ratio of mean and contrast
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
  extreme.scales = {1e-3, 1e9};
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

Match box_at(double x, double y, int width, int height, double rotation_deg = 0, double scale = 1) {
  Match match;
  match.x = x;
  match.y = y;
  match.width = width;
  match.height = height;
  match.rotation_deg = rotation_deg;
  match.scale = scale;
  match.center_x = (box_corners(match)[0][0] + box_corners(match)[2][0]) / 2;
  match.center_y = (box_corners(match)[0][1] + box_corners(match)[2][1]) / 2;
  return match;
}

TEST(Box, OverlapOfKnownBoxes) {
  EXPECT_NEAR(box_overlap(box_at(3, 4, 10, 6), box_at(3, 4, 10, 6)), 1, 1e-12);
  EXPECT_NEAR(box_overlap(box_at(0, 0, 10, 10), box_at(5, 0, 10, 10)), 1.0 / 3, 1e-12);
  EXPECT_EQ(box_overlap(box_at(0, 0, 10, 10), box_at(10, 0, 10, 10)), 0);
  EXPECT_NEAR(box_overlap(box_at(0, 0, 10, 10), box_at(0, 0, 10, 10, 0, 0.5)), 0.25, 0.02);
  // A square and itself turned by 45 degrees share a regular octagon of 2 (sqrt 2 - 1) times its area.
  Match square = box_at(0, 0, 10, 10), turned = box_at(0, 0, 10, 10, 45);
  turned.x += square.center_x - turned.center_x;
  turned.y += square.center_y - turned.center_y;
  turned.center_x = square.center_x;
  turned.center_y = square.center_y;
  const double octagon = 2 * (std::sqrt(2.0) - 1);
  EXPECT_NEAR(box_overlap(square, turned), octagon / (2 - octagon), 1e-9);
}

TEST(Candidates, AreTheLocalMaximaOfASurface) {
  std::vector<float> values(7 * 5, 0.0f);
  const auto at = [&](int x, int y) -> float& { return values[y * 7 + x]; };
  at(0, 0) = 0.5f;
  at(3, 2) = 0.9f;
  at(4, 2) = 0.8f;
  at(6, 4) = 0.7f;
  ThreadPool pool(2);
  const SurfaceView surface{values.data(), 7, 5};
  const auto found = find_candidates(surface, 0.4, pool);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].x, 3);
  EXPECT_EQ(found[0].y, 2);
  EXPECT_GT(found[0].offset_x, 0);
  EXPECT_GT(found[0].estimate, 0.9);
  EXPECT_EQ(found[1].x, 6);
  EXPECT_EQ(found[2].x, 0);
  const auto highest = find_candidates(surface, 2, pool);
  ASSERT_EQ(highest.size(), 1U);
  EXPECT_EQ(highest[0].x, 3);
}

}  // namespace
}  // namespace dic
