#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/likely_reason.hpp>
#include <random>
#include <vector>

namespace dic {
namespace {

constexpr int kSide = 160;

/// Random blobs of standard deviation `size` px, contrast 30 around 110 grey levels.
std::vector<double> texture(double size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const int reach = static_cast<int>(3 * size) + 1, wide = kSide + 2 * reach;
  std::vector<double> noise(static_cast<std::size_t>(wide) * wide), along(noise.size()), out;
  for (double& value : noise) value = normal(random);
  const auto blurred = [&](const std::vector<double>& from, int at, int stride) {
    double sum = 0, squares = 0;
    for (int k = -reach; k <= reach; ++k) {
      const double weight = std::exp(-k * k / (2 * size * size));
      sum += weight * from[at + k * stride], squares += weight * weight;
    }
    return sum / std::sqrt(squares);
  };
  for (int y = 0; y < wide; ++y)
    for (int x = reach; x < wide - reach; ++x) along[y * wide + x] = blurred(noise, y * wide + x, 1);
  for (int y = reach; y < wide - reach; ++y)
    for (int x = reach; x < wide - reach; ++x) out.push_back(110 + 30 * blurred(along, y * wide + x, wide));
  return out;
}

Image image_of(const std::vector<double>& greys, double gain = 1, double noise = 1) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  Image image({kSide, kSide}, ScalarType::u8);
  for (std::size_t k = 0; k < greys.size(); ++k)
    image.row<std::uint8_t>(0)[k] = static_cast<std::uint8_t>(
        std::clamp(std::round(gain * greys[k] + noise * normal(random)), 0.0, 255.0));
  return image;
}

std::string reason(const Image& frame, Status most = Status::low_correlation) {
  std::array<std::int64_t, kStatusCount> counts{};
  counts[static_cast<int>(most)] = 100;
  return likely_reason(image_of(texture(1.5, 1)), frame, counts);
}

bool says(const std::string& reason, const char* word) { return reason.find(word) != std::string::npos; }

TEST(LikelyReason, NamesARegionNarrowerThanHalfASubset) {
  const std::string narrow = reason(image_of(texture(1.5, 1)), Status::masked);
  EXPECT_TRUE(says(narrow, "inside the region")) << narrow;
  EXPECT_FALSE(says(narrow, "same specimen"));
}

TEST(LikelyReason, NamesWhatTheFrameLooksLike) {
  const std::vector<double> same = texture(1.5, 1);
  EXPECT_TRUE(says(reason(image_of(same, 0.05)), "dark")) << reason(image_of(same, 0.05));
  EXPECT_TRUE(says(reason(image_of(same, 4)), "saturated"));
  EXPECT_TRUE(says(reason(image_of(std::vector<double>(same.size(), 110))), "blank"));
  // A defocus of 5 px keeps the mean, a little contrast and almost no detail.
  std::vector<double> blurred = texture(5, 1);
  for (double& grey : blurred) grey = 110 + (grey - 110) * 0.3;
  EXPECT_TRUE(says(reason(image_of(blurred)), "out of focus")) << reason(image_of(blurred));
}

TEST(LikelyReason, SaysThatTheFramesAreAlike) {
  for (const double gain : {0.6, 1.0, 1.4}) {
    const std::string other = reason(image_of(texture(1.5, 2), gain));
    EXPECT_TRUE(says(other, "in order")) << gain << other;
    EXPECT_TRUE(says(other, "as sharp")) << gain << other;
  }
}

TEST(LikelyReason, StatusesOfTheReferenceComeFirst) {
  const Image same = image_of(texture(1.5, 1));
  EXPECT_TRUE(says(reason(same, Status::flat), "The reference has no texture"));
  EXPECT_TRUE(says(reason(same, Status::ambiguous), "--search"));
}

TEST(LikelyReason, SixteenBitAndSmallImages) {
  Image dark({20, 12}, ScalarType::u16), bright({20, 12}, ScalarType::u16);
  for (int k = 0; k < 240; ++k) {
    dark.row<std::uint16_t>(0)[k] = static_cast<std::uint16_t>(100 + k * 37 % 60);
    bright.row<std::uint16_t>(0)[k] = static_cast<std::uint16_t>(20000 + k * 37 % 60 * 200);
  }
  EXPECT_TRUE(says(likely_reason(bright, dark, {}), "dark"));
}

}  // namespace
}  // namespace dic
