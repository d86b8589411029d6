#include <cmath>
#include <dic/match.hpp>
#include <vector>

#include "support/backend_test.hpp"
#include "support/speckle.hpp"

// Tests template matching on other devices against the CPU and the known motion.
namespace dic {
namespace {

constexpr int image_side = 300, side = 61, at_x = 120, at_y = 93;

Image speckle_image(int width, int height, unsigned seed) {
  const test::Speckle speckle(width, height, 2, seed, 40);
  return test::converted<std::uint8_t>(
      test::image_of(width, height, [&](int x, int y) { return test::grey_of(speckle(x, y)); }),
      ScalarType::u8);
}

bool inside_disc(int x, int y) { return std::hypot(x - side / 2, y - side / 2) <= side / 2; }

Image disc_mask() {
  Image mask({side, side}, ScalarType::u8);
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) mask.row<std::uint8_t>(y)[x] = inside_disc(x, y) ? 255 : 0;
  return mask;
}

/// A disc of the image, surrounded by other content that must not count.
Image disc_of(const Image& image) {
  Image out = speckle_image(side, side, 77);
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      if (inside_disc(x, y)) out.row<std::uint8_t>(y)[x] = image.row<std::uint8_t>(at_y + y)[at_x + x];
  return out;
}

MatchResult find(const Image& wanted, const Image& image, MatchOptions options, const std::string& device) {
  const ImageView template_view = wanted, image_view = image;
  const Image mask = disc_mask();
  const ImageView mask_view = mask;
  options.device = device;
  return match_templates({&template_view, 1}, {&image_view, 1}, options, {&mask_view, 1});
}

void expect_same_matches(const MatchResult& other, const MatchResult& cpu) {
  ASSERT_EQ(other.matches.size(), cpu.matches.size());
  for (std::size_t i = 0; i < cpu.matches.size(); ++i) {
    EXPECT_NEAR(other.matches[i].x, cpu.matches[i].x, 1e-4);
    EXPECT_NEAR(other.matches[i].y, cpu.matches[i].y, 1e-4);
    EXPECT_NEAR(other.matches[i].score, cpu.matches[i].score, 1e-5);
    EXPECT_EQ(other.matches[i].rotation_deg, cpu.matches[i].rotation_deg);
  }
  EXPECT_NEAR(other.best_score, cpu.best_score, 1e-5);
}

class MatchOn : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { test::skip_without_device_of(GetParam()); }
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MatchOn);
INSTANTIATE_TEST_SUITE_P(Backends, MatchOn, testing::ValuesIn(test::other_backends()),
                         [](const auto& test) { return test.param; });

TEST_P(MatchOn, FindsADiscAmongOtherThings) {
  const Image image = speckle_image(image_side, image_side - 40, 5);
  const Image wanted = disc_of(image);
  MatchOptions options;
  for (const Criterion method : {Criterion::zncc, Criterion::ncc, Criterion::ssd}) {
    SCOPED_TRACE(to_string(method));
    options.method = method;
    const MatchResult other = find(wanted, image, options, GetParam());
    ASSERT_EQ(other.matches.size(), 1u);
    EXPECT_NEAR(other.matches[0].x, at_x, 1e-3);
    EXPECT_NEAR(other.matches[0].y, at_y, 1e-3);
    EXPECT_NEAR(other.matches[0].score, 1, 1e-6);
    expect_same_matches(other, find(wanted, image, options, "cpu"));
  }
}

TEST_P(MatchOn, AgreesWithTheCpuOnSeveralTurnedMatchesWithAMask) {
  const Image image = speckle_image(image_side, image_side - 40, 5);
  MatchOptions options;
  options.max_matches = 8;
  options.threshold = 0.2;
  options.rotations = {-10, 0, 10};
  options.scales = {0.9, 1};
  const Image wanted = disc_of(image);
  const MatchResult other = find(wanted, image, options, GetParam());
  EXPECT_GT(other.matches.size(), 3u);
  expect_same_matches(other, find(wanted, image, options, "cpu"));
}

}  // namespace
}  // namespace dic
