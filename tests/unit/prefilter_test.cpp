#include "analysis/prefilter.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <dic/shared/gaussian.hpp>
#include <dic/shared/icgn.hpp>
#include <random>

#include "analysis/interpolation_bias.hpp"
#include "support/speckle.hpp"

// Tests the estimates from the power spectrum of the reference: noise, low-pass, bias.
namespace dic::analysis {
namespace {

constexpr int kSize = 256;

fields::Points points_of(int size = kSize, int step = 8) {
  Image roi({size, size}, ScalarType::u8);
  for (int y = 0; y < size; ++y) std::fill_n(roi.row<std::uint8_t>(y), size, 255);
  return fields::Points(make_grid(roi, step));
}

/// An f32 speckle image of this blob size and contrast, with Gaussian noise.
Image speckle(double blob, double contrast, double noise) {
  const test::Speckle pattern(kSize, kSize, blob, 7, 40);
  std::mt19937 random(3);
  std::normal_distribution<double> gauss(0, 1);
  return test::image_of(kSize, kSize, [&](int x, int y) {
    return 128 + contrast * (test::grey_of(pattern(x, y)) - 128) + noise * gauss(random);
  });
}

PowerSpectrum spectrum_of(const Image& image) { return *PowerSpectrum::of(image, points_of()); }

TEST(PowerSpectrumOfTiles, IsTheVarianceOfWhiteNoiseAtEveryFrequency) {
  const PowerSpectrum spectrum = spectrum_of(speckle(2, 0, 3));
  double mean = 0;
  for (int j = 8; j < 56; ++j)
    for (int i = 8; i < 56; ++i) mean += spectrum(i, j) / (48 * 48);
  EXPECT_NEAR(mean, 9, 0.4);
  EXPECT_NEAR(spectrum.noise_variance(), 9, 0.6);
  EXPECT_EQ(spectrum(3, 60), spectrum(61, 4));
}

TEST(PowerSpectrumOfTiles, HasAWaveAtItsFrequency) {
  const Image wave = test::image_of(kSize, kSize, [](int x, int y) {
    return 100 + 10 * std::cos(PowerSpectrum::frequency(9) * x + PowerSpectrum::frequency(60) * y);
  });
  const PowerSpectrum spectrum = spectrum_of(wave);
  for (int j = 0; j < PowerSpectrum::kSize; ++j)
    for (int i = 0; i < PowerSpectrum::kSize; ++i) EXPECT_LE(spectrum(i, j), spectrum(9, 60) + 1e-3);
}

TEST(PowerSpectrumOfTiles, NeedsATile) {
  EXPECT_FALSE(PowerSpectrum::of(Image({63, 200}, ScalarType::u8), points_of(60)));
}

TEST(PowerSpectrumOfTiles, TellsTheNoiseUnderSpeckle) {
  EXPECT_NEAR(std::sqrt(spectrum_of(speckle(2, 1, 2)).noise_variance()), 2, 0.1);
  EXPECT_NEAR(std::sqrt(spectrum_of(speckle(1.2, 1, 2)).noise_variance()), 2, 0.2);
}

TEST(BestPrefilter, IsNoneForGoodSpeckleAndLongerTheWeakerItIs) {
  const auto best = [](double contrast, double noise) {
    return best_prefilter(spectrum_of(speckle(2, contrast, noise)), noise * noise, Interpolation::cubic);
  };
  EXPECT_EQ(best(1, 2), 0);
  EXPECT_EQ(best(1, 0), 0);
  EXPECT_EQ(best(0, 2), 0);  // without a pattern, a low-pass gains nothing
  EXPECT_GE(best(0.1, 3), 0.5);
  EXPECT_GE(best(0.03, 3), best(0.1, 3));
}

/// Filtered pixel from the definition.
double filtered_at(const Image& image, double sigma, int x, int y) {
  double sum = 0, weights = 0;
  const int reach = static_cast<int>(std::ceil(4 * sigma));
  for (int j = -reach; j <= reach; ++j)
    for (int i = -reach; i <= reach; ++i) {
      const double weight = std::exp(-0.5 * (i * i + j * j) / (sigma * sigma));
      sum += weight * image.row<float>(y + j)[x + i];
      weights += weight;
    }
  return sum / weights;
}

TEST(PrefilterOfImages, IsTheGaussian) {
  const Image image = speckle(2, 1, 5);
  core::ThreadPool pool(1);
  for (const double sigma : {0.5, 1.0, 2.0}) {
    TrackOptions options;
    options.prefilter = sigma;
    const Image filtered = Prefilter(options, std::nullopt, false, pool)(image);
    ASSERT_EQ(filtered.type(), ScalarType::f32);
    for (const auto& [x, y] : {std::pair(20, 30), std::pair(100, 90), std::pair(200, 231)})
      EXPECT_NEAR(filtered.row<float>(y)[x], filtered_at(image, sigma, x, y), 1e-3) << sigma;
  }
}

TEST(PrefilterOfImages, KeepsASlopeUpToTheEdge) {
  const Image slope = test::image_of(80, 70, [](int x, int y) { return 3 + 2 * x - y; });
  TrackOptions options;
  options.prefilter = 1.4;
  core::ThreadPool pool(1);
  const Image filtered = Prefilter(options, std::nullopt, false, pool)(slope);
  for (int y = 0; y < 70; ++y)
    for (int x = 0; x < 80; ++x) ASSERT_NEAR(filtered.row<float>(y)[x], 3 + 2 * x - y, 1e-3);
}

TEST(GradientNoiseGain, IsTheShareOfFilteredNoise) {
  EXPECT_NEAR(icgn::gradient_noise_gain(Interpolation::cubic, 0), 1.392, 1e-3);
  EXPECT_NEAR(icgn::gradient_noise_gain(Interpolation::quintic, 0), 1.894, 1e-3);
  // Smooth noise of autocorrelation exp(-x^2 / 4 sigma^2): the variance of its derivative is 1 / 2 sigma^2.
  EXPECT_NEAR(icgn::gradient_noise_gain(Interpolation::quintic, 2), 1.0 / 8, 1e-3);
}

TEST(InterpolationBiasOfASpectrum, IsASineThatGrowsAsBlobsShrink) {
  const auto bias_at = [](double blob, double u, Interpolation interpolation) {
    return InterpolationBias(spectrum_of(speckle(blob, 1, 0)), 0, interpolation, 0).at(u, 0)[0];
  };
  EXPECT_NEAR(bias_at(1, 0, Interpolation::cubic), 0, 1e-6);
  EXPECT_NEAR(bias_at(1, 0.5, Interpolation::cubic), 0, 1e-4);
  EXPECT_GT(bias_at(1, 0.25, Interpolation::cubic), 20e-4);
  EXPECT_NEAR(bias_at(1, 0.25, Interpolation::cubic), -bias_at(1, 0.75, Interpolation::cubic), 2e-4);
  EXPECT_LT(bias_at(1, 0.25, Interpolation::quintic), 0.5 * bias_at(1, 0.25, Interpolation::cubic));
  EXPECT_LT(bias_at(1.7, 0.25, Interpolation::cubic), 0.3 * bias_at(1, 0.25, Interpolation::cubic));
}

TEST(InterpolationBiasOfASpectrum, IsAveragedOverTheSubset) {
  const InterpolationBias bias(spectrum_of(speckle(1, 1, 0)), 0, Interpolation::cubic, 0);
  const double whole = bias.at(0.25, 0)[0];
  EXPECT_EQ(bias.over_subset(0.25, 0, {}, 33)[0], whole);
  // With half a period over the subset, 2 / pi remains.
  EXPECT_NEAR(bias.over_subset(0.25, 0, {0.5 / 33, 0, 0, 0}, 33)[0], whole * 0.6366, 0.02 * whole);
  EXPECT_EQ(bias.over_subset(0.25, 0, {0.2, 0, 0, 0}, 33)[0], 0);
}

}  // namespace
}  // namespace dic::analysis
