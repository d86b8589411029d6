#include <algorithm>
#include <cmath>
#include <dic/match.hpp>
#include <functional>
#include <limits>
#include <set>
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

// --- any pose ---

/// A speckle whose structures survive reduced images, turned and scaled about its centre.
Image turned_speckle(int width, int height, double blob, unsigned seed, double degrees, double scale) {
  const test::Speckle speckle(width, height, blob, seed, 40);
  const double c = std::cos(degrees * 0.017453292519943295) / scale,
               s = std::sin(degrees * 0.017453292519943295) / scale;
  const double cx = (width - 1) / 2.0, cy = (height - 1) / 2.0;
  return test::converted<std::uint8_t>(
      test::image_of(width, height,
                     [&](int x, int y) {
                       const double dx = x - cx, dy = y - cy;
                       return test::grey_of(speckle(cx + c * dx + s * dy, cy - s * dx + c * dy));
                     }),
      ScalarType::u8);
}

ImageView part_of(const Image& image, int x, int y, int width, int height) {
  ImageView view = image;
  view.data = image.row<std::uint8_t>(y) + x;
  view.width = width, view.height = height;
  return view;
}

/// The match of the same template that is nearest. Matches whose scores differ by rounding have any order.
const Match& counterpart(const MatchResult& result, const Match& of) {
  const auto distance = [&](const Match& m) {
    const double apart = std::hypot(m.center_x - of.center_x, m.center_y - of.center_y);
    return m.template_index == of.template_index ? apart : std::numeric_limits<double>::infinity();
  };
  return *std::ranges::min_element(result.matches, {}, distance);
}

void expect_same_poses(const MatchResult& other, const MatchResult& cpu) {
  ASSERT_EQ(other.matches.size(), cpu.matches.size());
  EXPECT_TRUE(std::ranges::is_sorted(other.matches, std::ranges::greater(), &Match::score));
  std::set<const Match*> counterparts;
  for (const Match& b : cpu.matches) {
    const Match& a = counterpart(other, b);
    SCOPED_TRACE(testing::Message() << "template " << b.template_index << " at " << b.center_x << ", "
                                    << b.center_y);
    counterparts.insert(&a);
    EXPECT_EQ(a.template_index, b.template_index);
    EXPECT_NEAR(a.center_x, b.center_x, 1e-3);
    EXPECT_NEAR(a.center_y, b.center_y, 1e-3);
    EXPECT_NEAR(std::remainder(a.rotation_deg - b.rotation_deg, 360), 0, 2e-3);
    EXPECT_NEAR(a.scale, b.scale, 2e-5);
    EXPECT_NEAR(a.score, b.score, 1e-3);
    EXPECT_NEAR(a.visible, b.visible, 2e-3);
    EXPECT_NEAR(a.sigma_x, b.sigma_x, 1e-3 + 0.02 * b.sigma_x);
  }
  EXPECT_EQ(counterparts.size(), cpu.matches.size());
}

struct PoseCase {
  const char* name;
  int width, height, template_width, template_height;
  double blob, degrees, scale;
  int templates = 1, matches = 1;
  bool masked = false, image_mask = false, polarity = false, narrow = false;
};

class PosesOn : public testing::TestWithParam<PoseCase> {
 protected:
  void SetUp() override { test::skip_without_device_of("cuda"); }
};

INSTANTIATE_TEST_SUITE_P(
    Cases, PosesOn,
    testing::Values(PoseCase{"small", 320, 240, 44, 40, 4, 33, 1},
                    PoseCase{"scaled", 301, 277, 60, 52, 5, -120, 1.12},
                    PoseCase{"large", 900, 700, 260, 180, 16, 77, 0.9},
                    PoseCase{"several", 400, 400, 48, 48, 4, 150, 1, 7},
                    PoseCase{"sizes", 500, 300, 64, 40, 5, 12, 1.05, 3, 4},
                    PoseCase{"masked", 320, 320, 61, 61, 5, 45, 1, 2, 1, true},
                    PoseCase{"image_mask", 320, 260, 56, 56, 5, 45, 1, 1, 1, false, true},
                    PoseCase{"polarity", 320, 260, 56, 50, 5, -15, 1, 1, 2, false, false, true},
                    PoseCase{"narrow", 320, 260, 56, 50, 5, 20, 1, 1, 1, false, false, false, true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(PosesOn, CudaAgreesWithTheCpu) {
  const PoseCase& c = GetParam();
  const Image before = turned_speckle(c.width, c.height, c.blob, 3, 0, 1);
  const Image after = turned_speckle(c.width, c.height, c.blob, 3, c.degrees, c.scale);
  std::vector<ImageView> templates, masks;
  Image mask({c.template_width, c.template_height}, ScalarType::u8);
  for (int y = 0; y < c.template_height; ++y)
    for (int x = 0; x < c.template_width; ++x)
      mask.row<std::uint8_t>(y)[x] =
          std::hypot(x - c.template_width / 2.0, y - c.template_height / 2.0) < c.template_width / 2.0;
  for (int k = 0; k < c.templates; ++k) {
    // The first one is cut by the border of the turned image in some cases.
    const int x = (c.width - c.template_width) / 2 + (k % 3 - 1) * c.width / 8,
              y = (c.height - c.template_height) / 2 + k * c.height / 40;
    templates.push_back(part_of(before, x, y, c.template_width, c.template_height));
    if (c.masked) masks.push_back(mask);
  }
  MatchOptions options;
  options.max_matches = c.matches;
  options.threshold = c.matches > 1 ? 0.4 : 0.5;
  options.ignore_polarity = c.polarity;
  options.rotation_range = c.narrow ? PoseRange{c.degrees - 30, c.degrees + 20} : PoseRange{-180, 180};
  if (c.scale != 1) options.scale_range = {0.8, 1.25};
  Image image_mask({c.width, c.height}, ScalarType::u8);
  for (int y = 0; y < c.height; ++y)
    for (int x = 0; x < c.width; ++x) image_mask.row<std::uint8_t>(y)[x] = std::hypot(x - 190, y - 120) > 14;
  const ImageView counts = c.image_mask ? ImageView(image_mask) : ImageView{};
  const auto found_on = [&](const char* device) {
    options.device = device;
    Matcher matcher(templates, options, masks);
    const MatchResult first = matcher.find(after, {}, counts);
    expect_same_poses(matcher.find(after, {}, counts), first);  // buffers are used again
    return first;
  };
  const MatchResult cpu = found_on("cpu"), gpu = found_on("cuda");
  EXPECT_GE(cpu.matches.size(), static_cast<std::size_t>(c.templates));
  expect_same_poses(gpu, cpu);
}

class PosesOfOne : public MatchOn {};

TEST_P(PosesOfOne, OfSeveralTemplatesAreThoseOfAll) {
  const Image before = turned_speckle(300, 300, 4, 8, 0, 1), after = turned_speckle(300, 300, 4, 8, 66, 1);
  const std::vector<ImageView> templates = {
      part_of(before, 100, 110, 44, 44), part_of(before, 150, 90, 44, 44), part_of(before, 120, 150, 60, 30),
      part_of(before, 110, 120, 50, 42)};
  MatchOptions options;
  options.rotation_range = {-180, 180};
  options.device = GetParam();
  Matcher matcher(templates, options);
  MatchResult one_by_one;
  for (int k = 0; k < matcher.templates(); ++k) one_by_one.add(matcher.find_template(k, after));
  ASSERT_EQ(one_by_one.matches.size(), templates.size());
  expect_same_poses(matcher.find(after), one_by_one);
}

INSTANTIATE_TEST_SUITE_P(Backends, PosesOfOne, testing::Values("cpu", "cuda"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace dic
