#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/preview.hpp>
#include <random>
#include <vector>

namespace dic {
namespace {

constexpr double kNoise = 2;  // grey levels

/// Gaussian blobs of one size at random places, without rounding.
class Blobs {
 public:
  explicit Blobs(double size) : size_(size) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> place(-20, kSide + 20);
    for (int k = 0; k < 3000; ++k) places_.push_back({place(random), place(random), k % 2 ? 25.0 : -25.0});
  }

  static constexpr int kSide = 256;

  /// Grey level, and its derivatives along x and y.
  struct Value {
    double grey = 120, dx = 0, dy = 0;
  };
  Value at(int x, int y) const {
    Value value;
    for (const Place& p : places_) {
      const double rx = x - p.x, ry = y - p.y, r2 = (rx * rx + ry * ry) / (size_ * size_);
      if (r2 > 25) continue;
      const double part = p.height * std::exp(-r2 / 2);
      value.grey += part;
      value.dx -= part * rx / (size_ * size_);
      value.dy -= part * ry / (size_ * size_);
    }
    return value;
  }

  Image image(double noise) const {
    Image image({kSide, kSide}, ScalarType::f32);
    std::mt19937 random(3);
    std::normal_distribution<double> normal(0, 1);
    std::vector<double> greys(kSide * kSide, 120.0);
    const int reach = static_cast<int>(std::ceil(5 * size_));
    for (const Place& p : places_)
      for (int y = std::max(0, int(p.y) - reach); y <= std::min(kSide - 1, int(p.y) + reach); ++y)
        for (int x = std::max(0, int(p.x) - reach); x <= std::min(kSide - 1, int(p.x) + reach); ++x)
          greys[y * kSide + x] +=
              p.height * std::exp(-(std::pow(x - p.x, 2) + std::pow(y - p.y, 2)) / (2 * size_ * size_));
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x)
        image.row<float>(y)[x] = static_cast<float>(greys[y * kSide + x] + noise * normal(random));
    return image;
  }

 private:
  struct Place {
    double x, y, height;
  };
  double size_;
  std::vector<Place> places_;
};

TEST(Preview, SizeContrastAndNoiseOfBlobs) {
  // The autocorrelation of a Gaussian is a Gaussian sqrt(2) times as wide; its full width is 2.355 sqrt(2)
  // standard deviations.
  for (const double size : {1.2, 2.0}) {
    const Image image = Blobs(size).image(kNoise);
    const Preview found = preview({}, image);
    EXPECT_NEAR(found.speckle_size, 3.33 * size, 0.12 * 3.33 * size);
    EXPECT_NEAR(found.noise, kNoise, 0.2 * kNoise);
    double sum = 0, squares = 0;
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x)
        sum += image.row<float>(y)[x], squares += std::pow(image.row<float>(y)[x], 2);
    const double n = 256.0 * 256, mean = sum / n;
    EXPECT_NEAR(found.mean, mean, 1e-3);
    EXPECT_NEAR(found.contrast, std::sqrt(squares / n - mean * mean), 1e-2);
    EXPECT_EQ(found.saturated, 0);
    EXPECT_EQ(found.points, 52 * 52);
  }
}

TEST(Preview, SigmaIsThatOfTheGradients) {
  const Blobs blobs(1.8);
  TrackOptions options;
  options.noise = kNoise;
  options.refine.order = 0;  // order 0 has the matrix of the translation alone
  options.prefilter = 0;
  const Preview found = preview(options, blobs.image(kNoise));
  int compared = 0;
  for (int j = 4; j < found.grid.ny - 4; j += 5)
    for (int i = 4; i < found.grid.nx - 4; i += 5) {
      double xx = 0, xy = 0, yy = 0;
      for (int y = -16; y <= 16; ++y)
        for (int x = -16; x <= 16; ++x) {
          const Blobs::Value value = blobs.at(found.grid.x(i) + x, found.grid.y(j) + y);
          xx += value.dx * value.dx, xy += value.dx * value.dy, yy += value.dy * value.dy;
        }
      // The factor 2 accounts for noise in both images.
      const double sigma = kNoise * std::sqrt(2 * std::max(xx, yy) / (xx * yy - xy * xy));
      EXPECT_NEAR(found.sigma[static_cast<std::size_t>(j) * found.grid.nx + i], sigma, 0.12 * sigma);
      ++compared;
    }
  EXPECT_GE(compared, 9);
}

TEST(Preview, RecommendsWhatNoiseAndSpeckleAskFor) {
  const Image image = Blobs(2).image(0.2);
  TrackOptions options;
  options.prefilter = 0;
  options.noise = 0.2;
  const Preview quiet = preview(options, image);
  EXPECT_GE(quiet.subset, 3 * quiet.speckle_size);
  EXPECT_LE(quiet.subset, 3 * quiet.speckle_size + 3);
  EXPECT_EQ(quiet.step, quiet.subset / 4);
  EXPECT_NE(quiet.reason.find("three speckles"), std::string::npos) << quiet.reason;
  options.noise = 0.8;
  const Preview noisy = preview(options, image);
  EXPECT_GT(noisy.subset, quiet.subset);
  EXPECT_NE(noisy.reason.find("predicted sigma is below 0.010"), std::string::npos) << noisy.reason;
  options.refine.subset = noisy.subset;
  EXPECT_LT(preview(options, image).ninety_percent_sigma, 0.0115);
}

TEST(Preview, KnowsTheRegion) {
  Image image = Blobs(1.5).image(1);
  Roi roi;
  roi.rect = Roi::Rect{40, 60, 100, 80};
  const Preview part = preview({}, image, roi);
  EXPECT_EQ(part.points, 20 * 16);
  EXPECT_EQ(part.grid.x0, 40);
  EXPECT_EQ(part.grid.y0, 60);
}

TEST(Preview, CountsSaturatedPixels) {
  Image image({128, 128}, ScalarType::u8);
  std::mt19937 random(1);
  int saturated = 0;
  for (int y = 0; y < 128; ++y)
    for (int x = 0; x < 128; ++x) {
      image.row<std::uint8_t>(y)[x] = random() % 10 == 0 ? 255 : static_cast<std::uint8_t>(random() % 250);
      saturated += image.row<std::uint8_t>(y)[x] == 255;
    }
  const Preview found = preview({}, image);
  EXPECT_DOUBLE_EQ(found.saturated, saturated / (128.0 * 128));
  EXPECT_NE(found.reason.find("saturated"), std::string::npos);
}

TEST(Preview, SaysWhatItCannotPredict) {
  const Preview blank = preview({}, Image({128, 128}, ScalarType::u8));
  EXPECT_TRUE(std::isnan(blank.speckle_size));
  EXPECT_NE(blank.reason.find("no pattern"), std::string::npos);
  EXPECT_THROW(preview({}, Image({50, 50}, ScalarType::u8)), UsageError);
  TrackOptions wrong;
  wrong.refine.subset = 20;
  EXPECT_THROW(preview(wrong, Image({128, 128}, ScalarType::u8)), UsageError);
}

}  // namespace
}  // namespace dic
