#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/peak_finder.hpp>
#include <random>
#include <set>

#include "support/correlate_cases.hpp"

// Several peaks per pair, compared with a search by hand in surfaces and with known positions.
namespace dic {
namespace {

using namespace test;

std::vector<RankedPeak> found_in(const CorrelateRequest& request, const PeakOptions& options) {
  PeakFinder finder("cpu", 2);
  std::vector<RankedPeak> peaks;
  finder.find(request, options, peaks);
  return peaks;
}

/// The best remaining value of a surface, again and again; what surrounds it is blanked.
std::vector<RankedPeak> by_hand(std::vector<float> values, const Shifts& shifts, int count, int distance) {
  std::vector<RankedPeak> peaks;
  const std::vector<float> all = values;
  const auto at = [&](int x, int y) {
    return x < 0 || y < 0 || x >= shifts.nx() || y >= shifts.ny() ? -1.0F : all[y * shifts.nx() + x];
  };
  while (std::ssize(peaks) < count) {
    const auto best = std::ranges::max_element(values);
    if (!(*best > 0)) break;
    const int x = static_cast<int>((best - values.begin()) % shifts.nx());
    const int y = static_cast<int>((best - values.begin()) / shifts.nx());
    bool is_highest = true;
    for (int k = 0; k < 9; ++k) is_highest &= k == 4 || at(x + k % 3 - 1, y + k / 3 - 1) <= *best;
    if (!is_highest) {
      *best = 0;
      continue;
    }
    RankedPeak peak;
    peak.dx = shifts.dx_min + x, peak.dy = shifts.dy_min + y, peak.score = *best;
    peaks.push_back(peak);
    for (int j = std::max(0, y - distance); j <= std::min(shifts.ny() - 1, y + distance); ++j)
      for (int i = std::max(0, x - distance); i <= std::min(shifts.nx() - 1, x + distance); ++i)
        values[j * shifts.nx() + i] = 0;
  }
  return peaks;
}

class PeakFinderPairs : public ::testing::TestWithParam<Pairing> {};

TEST_P(PeakFinderPairs, AreThoseOfTheSurfaces) {
  const TestImage reference = noise(60, 60, ScalarType::u8, 1), search = noise(90, 90, ScalarType::u8, 2);
  Case c{.pairing = GetParam(), .ref_h = 9, .ref_w = 7, .search_h = 40, .search_w = 44};
  c.shifts = Shifts::valid({c.ref_w, c.ref_h}, {c.search_w, c.search_h});
  const bool is_one = c.pairing == Pairing::one_to_many;
  for (int k = 0; k < (is_one ? 1 : 3); ++k) c.references.push_back({0, 3 * k, 5 * k});
  for (int k = 0; k < (c.pairing == Pairing::n_to_mn ? 6 : 3); ++k) c.windows.push_back({0, 7 * k, 4 * k});
  const CorrelateRequest request = request_of(c, reference.view, search.view, Criterion::zncc, "");
  Correlator correlator("cpu", 1);
  Surfaces surfaces;
  correlator.surfaces(request, surfaces);
  constexpr int kCount = 5, kDistance = 3;
  const auto peaks = found_in(request, {.count = kCount, .distance = kDistance});
  ASSERT_EQ(std::ssize(peaks), surfaces.pairs * kCount);
  for (std::int64_t pair = 0; pair < surfaces.pairs; ++pair) {
    const float* values = surfaces.surface<float>(pair);
    const auto wanted = by_hand({values, values + c.shifts.count()}, c.shifts, kCount + 1, kDistance);
    ASSERT_EQ(wanted.size(), kCount + 1U);
    for (int k = 0; k < kCount; ++k) {
      const RankedPeak& peak = peaks[pair * kCount + k];
      EXPECT_TRUE(peak.found);
      EXPECT_EQ(peak.dx, wanted[k].dx) << pair << ", " << k;
      EXPECT_EQ(peak.dy, wanted[k].dy) << pair << ", " << k;
      EXPECT_NEAR(peak.score, wanted[k].score, 1e-6);
      EXPECT_NEAR(peak.next_score, wanted[k + 1].score, 1e-6);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, PeakFinderPairs,
                         ::testing::Values(Pairing::one_to_one, Pairing::one_to_many, Pairing::n_to_mn,
                                           Pairing::n_to_m),
                         [](const auto& of) { return std::string(to_string(of.param)); });

/// A disc with a soft edge.
double disc(double x, double y, double radius) {
  return 1 / (1 + std::exp((std::hypot(x, y) - radius) / 0.7));
}

struct Spot {
  double x, y, height;
};

TestImage pattern(const std::vector<Spot>& spots, double noise_level, unsigned seed) {
  TestImage image(96, 96, ScalarType::f32, 0);
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, noise_level);
  for (int y = 0; y < 96; ++y)
    for (int x = 0; x < 96; ++x) {
      double grey = 10 + noise(random);
      for (const Spot& s : spots) grey += s.height * disc(x - s.x, y - s.y, 5);
      image.set(y, x, grey);
    }
  return image;
}

TestImage wanted_disc() {
  TestImage image(17, 17, ScalarType::f32, 0);
  for (int y = 0; y < 17; ++y)
    for (int x = 0; x < 17; ++x) image.set(y, x, disc(x - 8, y - 8, 5));
  return image;
}

CorrelateRequest request_of_disc(const TestImage& disc, const TestImage& image, Criterion criterion) {
  static const std::vector<PatchPosition> corner(1);
  CorrelateRequest request;
  request.reference = {{&disc.view, 1}, corner, {17, 17}};
  request.search = {{&image.view, 1}, corner, {96, 96}};
  request.shifts = Shifts::valid({17, 17}, {96, 96});
  request.criterion = criterion;
  return request;
}

TEST(PeakFinder, DiscsOfAPatternAreFoundWithTheirScatter) {
  const std::vector<Spot> spots = {
      {20.3, 22.8, 100}, {60.7, 25.4, 100}, {40.1, 60.6, 100}, {75.5, 72.2, 100}};
  const TestImage disc = wanted_disc();
  double squares = 0;
  int number = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const TestImage image = pattern(spots, 12, seed);
    const auto peaks = found_in(request_of_disc(disc, image, Criterion::zncc), {.count = 6, .distance = 8});
    for (const Spot& spot : spots) {
      const auto near = std::ranges::min_element(peaks, {}, [&](const RankedPeak& p) {
        return p.found ? std::hypot(p.x + 8 - spot.x, p.y + 8 - spot.y) : 1e9;
      });
      for (const auto& [error, sigma] :
           {std::pair{near->x + 8 - spot.x, near->sigma_x}, std::pair{near->y + 8 - spot.y, near->sigma_y}}) {
        EXPECT_LT(std::abs(error), 0.3);
        squares += error * error / (sigma * sigma);
        ++number;
      }
    }
    // The four discs stand out from what noise makes.
    EXPECT_GT(peaks[3].score, 0.8);
    EXPECT_LT(peaks[3].next_score, 0.6);
    EXPECT_EQ(peaks[3].next_score, peaks[4].found ? peaks[4].score : 0);
  }
  EXPECT_NEAR(std::sqrt(squares / number), 1, 0.25);
}

TEST(PeakFinder, BestOfSsdAreTheSmallest) {
  const std::vector<Spot> spots = {{20.3, 22.8, 1}, {60.7, 25.4, 0.8}};
  TestImage image = pattern(spots, 0, 0);
  for (int y = 0; y < 96; ++y)
    for (int x = 0; x < 96; ++x) image.set(y, x, image.get(y, x) - 10);
  const TestImage disc = wanted_disc();
  const auto peaks =
      found_in(request_of_disc(disc, image, Criterion::ssd), {.count = 3, .distance = 8, .least_score = 20});
  EXPECT_TRUE(peaks[0].found && peaks[1].found);
  EXPECT_FALSE(peaks[2].found);
  EXPECT_NEAR(peaks[0].x + 8, 20.3, 0.05);
  EXPECT_NEAR(peaks[1].y + 8, 25.4, 0.05);
  EXPECT_LT(peaks[0].score, peaks[1].score);
}

TEST(PeakFinder, MissingPeaksSaySo) {
  const TestImage disc = wanted_disc();
  const TestImage image = pattern({{30, 30, 100}}, 0, 0);
  const auto peaks = found_in(request_of_disc(disc, image, Criterion::zncc),
                              {.count = 3, .distance = 2, .least_score = 0.9F});
  EXPECT_TRUE(peaks[0].found);
  EXPECT_EQ(peaks[0].dx, 22);
  EXPECT_EQ(peaks[0].next_score, 0);
  EXPECT_FALSE(peaks[1].found || peaks[2].found);
  // An image without contrast has no peak.
  const TestImage flat = pattern({}, 0, 0);
  EXPECT_FALSE(found_in(request_of_disc(disc, flat, Criterion::zncc), {})[0].found);
}

TEST(PeakFinder, WrongRequestsAreRefused) {
  const TestImage disc = wanted_disc();
  const TestImage image = pattern({{30, 30, 100}}, 0, 0);
  EXPECT_THROW(found_in(request_of_disc(disc, image, Criterion::cross_correlation), {}), UsageError);
  EXPECT_THROW(found_in(request_of_disc(disc, image, Criterion::zncc), {.count = 0}), UsageError);
  EXPECT_THROW(found_in(request_of_disc(disc, image, Criterion::zncc), {.distance = -1}), UsageError);
}

}  // namespace
}  // namespace dic
