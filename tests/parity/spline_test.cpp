#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <dic/kernels/spline.hpp>
#include <dic/refine.hpp>
#include <utility>
#include <vector>

#include "parity/refine_support.hpp"
#include "refine/image.hpp"
#include "support/gpu_test.hpp"
#include "support/speckle.hpp"

// Tests splines on the GPU against the CPU.
namespace dic {
namespace {

using namespace refine;
using namespace test;

struct SplineCase {
  Interpolation interpolation;
  int width, height;
};
void PrintTo(const SplineCase& c, std::ostream* out) {
  *out << to_string(c.interpolation) << "_" << c.width << "x" << c.height;
}

class SplineOnGpu : public GpuTest, public testing::WithParamInterface<SplineCase> {};

TEST_P(SplineOnGpu, CoefficientsAreThoseOfTheCpu) {
  const auto [interpolation, width, height] = GetParam();
  const Image image = random_image(width, height, 7);
  core::ThreadPool pool(1);
  PaddedImage expected;
  spline_coefficients(image, interpolation, expected, pool);
  DeviceSpline spline(image, interpolation);
  const DeviceSpline::Coefficients found = spline.coefficients();
  constexpr int margin = kernels::PlaneLayout::margin;
  double error = 0, largest = 0;
  for (int y = -margin; y < height + margin; ++y)
    for (int x = -margin; x < width + margin; ++x) {
      const float upper = found[spline.index(x, y)].upper;
      error = std::max(error, std::abs(double{upper} - *expected.at(x, y)));
      largest = std::max(largest, std::abs(double{*expected.at(x, y)}));
      ASSERT_FALSE(std::isnan(upper)) << x << ", " << y;
      if (y > -margin) {
        ASSERT_EQ(found[spline.index(x, y - 1)].lower, upper) << x << ", " << y;
      }
    }
  EXPECT_LT(error, 3e-6 * largest);
}

TEST_P(SplineOnGpu, GradientsAreThoseOfTheCpu) {
  const auto [interpolation, width, height] = GetParam();
  const Image image = random_image(width, height, 9);
  core::ThreadPool pool(1);
  PaddedImage dx, dy;
  spline_gradient(to_float(image, pool), interpolation, dx, dy, pool);
  DeviceSpline spline(image, interpolation);
  const DeviceSpline::Reference found = spline.reference();
  double error = 0;
  float largest = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const std::size_t at = spline.index(x, y);
      const bool outermost = x == 0 || y == 0 || x == width - 1 || y == height - 1;
      ASSERT_EQ(found.pixels[at].grey, image.row<float>(y)[x]);
      const auto [found_x, found_y] = gradient(found, at);
      ASSERT_FALSE(std::isnan(found_x + found_y)) << x << ", " << y;
      error = std::max(error, std::abs(found_x - (outermost ? 0 : *dx.at(x, y))));
      error = std::max(error, std::abs(found_y - (outermost ? 0 : *dy.at(x, y))));
      largest = std::max(largest, image.row<float>(y)[x]);
    }
  EXPECT_LT(error, 5e-4);
  EXPECT_EQ(found.range.largest, largest);
  EXPECT_EQ(found.range.magnitude, largest);
}

bool same_bits(const auto& a, const auto& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

TEST_P(SplineOnGpu, SomeRowsHaveTheBitsOfAll) {
  const auto [interpolation, width, height] = GetParam();
  const Image image = random_image(width, height, 8);
  DeviceSpline whole(image, interpolation);
  const auto all = whole.coefficients();
  const auto reference = whole.reference();
  constexpr int margin = kernels::PlaneLayout::margin;
  for (const kernels::RowRange rows :
       {kernels::RowRange{0, height / 3}, {height / 3, height / 2 + 1}, {height / 2, height}}) {
    if (rows.count() == 0) continue;
    SCOPED_TRACE(testing::Message() << "rows " << rows.first << " to " << rows.last);
    const auto some = DeviceSpline(image, interpolation).coefficients(rows);
    const auto some_reference = DeviceSpline(image, interpolation).reference(rows);
    EXPECT_TRUE(same_bits(some_reference.range, reference.range));
    for (int y = -margin; y < height + margin; ++y)
      for (int x = 0; x < width; ++x) {
        const std::size_t at = whole.index(x, y);
        const bool wanted = y >= rows.first - margin && y < rows.last + margin;
        ASSERT_EQ(same_bits(some[at].upper, all[at].upper), wanted) << x << ", " << y;
        ASSERT_EQ(std::isnan(some[at].upper), !wanted) << x << ", " << y;
        if (wanted && y + 1 < rows.last + margin) {
          ASSERT_TRUE(same_bits(some[at].lower, all[at].lower)) << x << ", " << y;
        }
        ASSERT_TRUE(wanted || std::isnan(some[at].lower)) << x << ", " << y;
        if (y < 0 || y >= height) continue;
        const bool there = y >= rows.first && y < rows.last;
        ASSERT_EQ(same_bits(some_reference.pixels[at], reference.pixels[at]), there) << x << ", " << y;
        ASSERT_EQ(same_bits(some_reference.rest[at], reference.rest[at]), there) << x << ", " << y;
      }
  }
}

std::vector<SplineCase> spline_cases() {
  std::vector<SplineCase> cases;
  for (auto interpolation : {Interpolation::cubic, Interpolation::quintic})
    for (auto [w, h] : {std::pair{1, 9},
                        {9, 1},
                        {1, 1},
                        {2, 3},
                        {7, 31},
                        {64, 64},
                        {65, 63},
                        {300, 5},
                        {130, 200},
                        {320, 128},
                        {368, 176},
                        {401, 299}})
      cases.push_back({interpolation, w, h});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Sizes, SplineOnGpu, testing::ValuesIn(spline_cases()),
                         testing::PrintToStringParamName());

using SplineTypesOnGpu = GpuTest;

TEST_F(SplineTypesOnGpu, ReadEveryType) {
  const Image image = random_image(70, 41, 3);
  const auto expected = DeviceSpline(image, Interpolation::cubic).coefficients();
  for (const Image& typed :
       {converted<std::uint8_t>(image, ScalarType::u8), converted<std::uint16_t>(image, ScalarType::u16),
        converted<std::int32_t>(image, ScalarType::i32), converted<double>(image, ScalarType::f64)}) {
    const auto found = DeviceSpline(typed, Interpolation::cubic).coefficients();
    for (int y = 0; y < 41; ++y)
      for (int x = 0; x < 70; ++x) {
        const std::size_t at = DeviceSpline(image, Interpolation::cubic).index(x, y);
        ASSERT_EQ(found[at].upper, expected[at].upper) << to_string(typed.type());
      }
  }
}

}  // namespace
}  // namespace dic
