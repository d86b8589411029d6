#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/shared/trust_rules.hpp>
#include <dic/track.hpp>
#include <random>

#include "support/speckle.hpp"

// Tests that chance matches are given up regardless of their zncc, and measurements are kept.
namespace dic::test {
namespace {

constexpr int size = 300;

TrackOptions options_of(int subset) {
  TrackOptions options;
  options.refine.subset = subset;
  options.step = 5;
  options.device = "cpu";
  return options;
}

/// Coarse speckle with few blobs per subset and noise of one grey level, displaced by (u, v).
Image speckled(unsigned seed, double u = 0, double v = 0) {
  const Speckle speckle(size, size, 3.5, seed);
  std::mt19937 random(seed + 100);
  std::normal_distribution<double> noise;
  return converted<std::uint8_t>(image_of(size, size,
                                          [&](double x, double y) {
                                            return std::round(grey_of(speckle(x - u, y - v)) + noise(random));
                                          }),
                                 ScalarType::u8);
}

std::int64_t count(const Field& field, Status status) {
  return field.counts()[static_cast<std::size_t>(status)];
}

TEST(Trust, UnrelatedImagesGiveNoPoint) {
  const Image reference = speckled(1), other = speckled(2);
  for (const int subset : {11, 15, 21, 33})
    EXPECT_EQ(count(Tracker(options_of(subset), reference.view()).track(other.view()).field, Status::ok), 0)
        << subset;
}

TEST(Trust, ImagesThatBelongTogetherLoseNothing) {
  const Image reference = speckled(1), moved = speckled(1, 0.3, -0.2);
  for (const int subset : {15, 21, 33}) {
    const Field field = Tracker(options_of(subset), reference.view()).track(moved.view()).field;
    EXPECT_EQ(count(field, Status::low_correlation), 0) << subset;
    // Some points of the outermost row and column move beyond the middle of the last pixels.
    const Grid& grid = field.grid();
    std::int64_t visible = 0;
    for (std::int64_t k = 0; k < grid.nodes(); ++k) {
      const int x = grid.x(static_cast<int>(k % grid.nx)), y = grid.y(static_cast<int>(k / grid.nx));
      visible += grid.inside[k] && x + 0.3 <= reference.width() - 1 && y - 0.2 >= 0;
    }
    EXPECT_GT(count(field, Status::ok), 0.99 * static_cast<double>(visible)) << subset;
  }
}

TEST(Trust, OnePatchOfAnotherImageIsNotMeasured) {
  const Image reference = speckled(1), other = speckled(2);
  Image moved = speckled(1, 2.3, 1.2);
  for (int y = 100; y < 200; ++y)
    std::copy_n(other.row<std::uint8_t>(y) + 100, 100, moved.row<std::uint8_t>(y) + 100);
  const Field field = Tracker(options_of(21), reference.view()).track(moved.view()).field;
  const Grid& grid = field.grid();
  std::int64_t inside = 0;
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
      if (field.status[k] != Status::ok) continue;
      const int x = grid.x(i), y = grid.y(j);
      if (x < 20) continue;  // subsets are cut by the border and have few blobs
      inside += std::max(std::abs(x - 150), std::abs(y - 150)) < 40;
      if (std::max(std::abs(x - 150), std::abs(y - 150)) < 60) continue;  // subsets contain both
      EXPECT_NEAR(field.u[k], 2.3, 0.3);
      EXPECT_NEAR(field.v[k], 1.2, 0.3);
    }
  EXPECT_EQ(inside, 0);
  EXPECT_GT(count(field, Status::ok), 2000);
}

TEST(Trust, AFewPointsAloneAreKept) {
  const Image reference = speckled(1), moved = speckled(1, 0.3, -0.2);
  Roi roi;
  roi.rect = Roi::Rect{140, 140, 11, 11};
  TrackOptions options = options_of(11);
  const Field field = Tracker(options, reference.view(), roi).track(moved.view()).field;
  EXPECT_GT(count(field, Status::ok), 0);
  EXPECT_EQ(count(field, Status::ok) + count(field, Status::masked), field.grid().points());
}

/// Dots every 12 px, and speckle left of column `speckled_until`; displaced by (u, 0).
Image dotted(double u, int speckled_until, unsigned seed) {
  const Speckle speckle(size, size, 2, 3);
  std::mt19937 random(seed);
  std::normal_distribution<double> noise;
  const auto grey = [&](double x, double y) {
    const double dx = std::remainder(x, 12), dy = std::remainder(y, 12);
    return x < speckled_until ? grey_of(speckle(x, y)) : 200 - 140 * std::exp(-(dx * dx + dy * dy) / 8);
  };
  return converted<std::uint8_t>(
      image_of(size, size, [&](double x, double y) { return std::round(grey(x - u, y) + noise(random)); }),
      ScalarType::u8);
}

TEST(Trust, PeriodicTextureIsAmbiguousUnlessTheSearchDecides) {
  const Image reference = dotted(0, 0, 1), moved = dotted(2.3, 0, 2);
  TrackOptions options = options_of(21);
  Field field = Tracker(options, reference.view()).track(moved.view()).field;
  EXPECT_EQ(count(field, Status::ok), 0);
  EXPECT_GT(count(field, Status::ambiguous), 0.6 * static_cast<double>(field.grid().points()));
  options.search = 8;  // a search of 10 would allow both 2.3 and -9.7
  field = Tracker(options, reference.view()).track(moved.view()).field;
  EXPECT_GT(count(field, Status::ambiguous), 0.6 * static_cast<double>(field.grid().points()));
  options.search = 5;
  field = Tracker(options, reference.view()).track(moved.view()).field;
  EXPECT_GT(count(field, Status::ok), 0.98 * static_cast<double>(field.grid().points()));
  for (std::size_t k = 0; k < field.status.size(); ++k)
    EXPECT_TRUE(field.status[k] != Status::ok || std::abs(field.u[k] - 2.3) < 0.5) << field.u[k];
}

TEST(Trust, UniqueNeighboursDecideForPeriodicTexture) {
  const Image reference = dotted(0, 100, 1), moved = dotted(2.3, 100, 2);
  const Field field = Tracker(options_of(21), reference.view()).track(moved.view()).field;
  std::int64_t right = 0;
  for (std::size_t k = 0; k < field.status.size(); ++k) {
    if (field.status[k] != Status::ok) continue;
    EXPECT_NEAR(field.u[k], 2.3, 0.5);
    ++right;
  }
  EXPECT_GT(right, 0.3 * static_cast<double>(field.grid().points()));
}

TEST(Trust, MediansOfClassesAreThoseOfTheValues) {
  std::mt19937 random(5);
  std::lognormal_distribution<float> values(1, 2);
  std::vector<float> all;
  std::vector<std::int32_t> counts(track::ValueClasses::kCount);
  EXPECT_EQ(track::ValueClasses::median(counts.data()), 0);
  for (int k = 0; k < 1001; ++k) {
    all.push_back(values(random));
    ++counts[track::ValueClasses::of(all.back())];
  }
  std::nth_element(all.begin(), all.begin() + 500, all.end());
  const float median = track::ValueClasses::median(counts.data());
  EXPECT_GE(median, all[500]);
  EXPECT_LE(median, 1.13f * all[500]);
}

TEST(Trust, LowerQuartileOfClassesIsThatOfTheValues) {
  std::vector<std::int32_t> counts(track::ValueClasses::kCount);
  EXPECT_EQ(track::ValueClasses::lower_quartile(counts.data()), 0);
  for (int k = 1; k <= 400; ++k) ++counts[track::ValueClasses::of(static_cast<float>(k))];
  const float quartile = track::ValueClasses::lower_quartile(counts.data());
  EXPECT_GE(quartile, 100);
  EXPECT_LE(quartile, 1.13f * 101);
}

TEST(Trust, NoiseIsKnownByTheAreaOfALargeGroupAndAQuarterOfThePoints) {
  EXPECT_TRUE(track::knows_noise(100, 400, 92));
  EXPECT_FALSE(track::knows_noise(100, 401, 92));
  EXPECT_FALSE(track::knows_noise(91, 100, 92));
}

/// A specimen in a dark surround whose fixed pattern, of `pattern` grey levels, does not move with it.
Image specimen(double u, double pattern, unsigned noise_seed) {
  const Speckle speckle(size, size, 2, 7);
  const Image surround = noisy(image_of(size, size, [](double, double) { return 30.0; }), pattern, 3);
  std::mt19937 random(noise_seed);
  std::normal_distribution<double> noise(0, 2);
  return converted<std::uint8_t>(
      image_of(size, size,
               [&](double x, double y) {
                 const bool inside = x >= 60 + u && x < 240 + u;
                 const double grey = inside ? grey_of(speckle(x - u, y))
                                            : surround.row<float>(static_cast<int>(y))[static_cast<int>(x)];
                 return std::round(grey + noise(random));
               }),
      ScalarType::u8);
}

TEST(Trust, TheSurroundOfASpecimenIsFlatAndTheSpecimenMeasured) {
  for (const double pattern : {0.0, 0.8}) {
    const Field field =
        Tracker(options_of(21), specimen(0, pattern, 1).view()).track(specimen(1.4, pattern, 2).view()).field;
    const Grid& grid = field.grid();
    for (std::int64_t k = 0; k < grid.nodes(); ++k) {
      const int x = grid.x(static_cast<int>(k % grid.nx));
      const int y = grid.y(static_cast<int>(k / grid.nx));
      if (std::min(x, y) < 15 || std::max(x, y) > size - 16) continue;  // may leave the image
      // The subset sees only the surround, or only the specimen and not its edge.
      if (x + 10 < 60 || x - 10 > 243) {
        EXPECT_EQ(field.status[k], Status::flat) << pattern << ", x = " << x;
      }
      if (x - 15 < 60 || x + 15 >= 239) continue;
      EXPECT_EQ(field.status[k], Status::ok) << pattern << ", x = " << x;
      EXPECT_NEAR(field.u[k], 1.4, 0.2);
    }
  }
}

TEST(Trust, LargeGroupsHaveTheAreaOfTwoSubsets) {
  EXPECT_EQ(track::large_group(33, 5), 4 + 88);
  EXPECT_EQ(track::large_group(21, 21), 4 + 2);
  EXPECT_EQ(track::large_group(21, 100), 4 + 1);
}

}  // namespace
}  // namespace dic::test
