#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/refine.hpp>
#include <dic/shared/reflect.hpp>
#include <vector>

#include "refine/image.hpp"
#include "support/refine_support.hpp"
#include "support/speckle.hpp"

// Tests interpolating splines against coefficients from a linear system in double.
namespace dic {
namespace {

using namespace refine;
using namespace test;

struct SplineCase {
  Interpolation interpolation;
  int width, height;
  std::size_t band_bytes = kColumnBandBytes;
};
void PrintTo(const SplineCase& c, std::ostream* out) {
  *out << to_string(c.interpolation) << "_" << c.width << "x" << c.height
       << (c.band_bytes < kColumnBandBytes ? "_in_bands" : "");
}

class Spline : public testing::TestWithParam<SplineCase> {};

TEST(PaddedImage, HasZerosAroundItsPixels) {
  constexpr int kWidth = 61, kHeight = 40, kMargin = PaddedImage::kMargin;
  core::ThreadPool pool(2);
  const Image image = random_image(kWidth, kHeight, 3);
  for (int turn = 0; turn < 3; ++turn) {  // later turns reuse memory
    PaddedImage padded = to_float(image, pool);
    for (int y = -kMargin; y < kHeight + kMargin; ++y)
      for (int x = -kMargin; x < padded.stride() - kMargin; ++x) {
        const bool inside = x >= 0 && x < kWidth && y >= 0 && y < kHeight;
        ASSERT_EQ(*padded.at(x, y), inside ? image.row<float>(y)[x] : 0) << x << ", " << y;
        *padded.at(x, y) = NAN;
      }
  }
}

TEST_P(Spline, CoefficientsSolveTheInterpolationConditions) {
  const auto [interpolation, width, height, band_bytes] = GetParam();
  const Image image = random_image(width, height, 7);
  const NaiveSpline truth(image, interpolation);
  core::ThreadPool pool(2);
  PaddedImage coefficients;
  spline_coefficients(image, interpolation, coefficients, pool, band_bytes);
  const double scale = coefficient_scale(interpolation);
  double error = 0, largest = 0;
  for (int y = -PaddedImage::kMargin; y < height + PaddedImage::kMargin; ++y)
    for (int x = -PaddedImage::kMargin; x < width + PaddedImage::kMargin; ++x) {
      const double expected = truth.coefficient(x, y);
      error = std::max(error, std::abs(*coefficients.at(x, y) * scale - expected));
      largest = std::max(largest, std::abs(expected));
    }
  EXPECT_LT(error, 3e-6 * largest);  // float32 rounding, amplified by the filter on white noise
}

TEST_P(Spline, InterpolatesThePixels) {
  const auto [interpolation, width, height, band_bytes] = GetParam();
  const Image image = random_image(width, height, 8);
  core::ThreadPool pool(2);
  PaddedImage coefficients;
  spline_coefficients(image, interpolation, coefficients, pool, band_bytes);
  const int degree = degree_of(interpolation), reach = degree / 2;
  double largest = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      double value = 0;
      for (int r = -reach; r <= reach; ++r)
        for (int c = -reach; c <= reach; ++c)
          value += bspline(degree, r) * bspline(degree, c) * *coefficients.at(x + c, y + r);
      largest =
          std::max(largest, std::abs(coefficient_scale(interpolation) * value - image.row<float>(y)[x]));
    }
  EXPECT_LT(largest, 5e-4);
}

TEST_P(Spline, GradientIsTheDerivativeOfTheSpline) {
  const auto [interpolation, width, height, band_bytes] = GetParam();
  const Image image = random_image(width, height, 9);
  const NaiveSpline truth(image, interpolation);
  core::ThreadPool pool(2);
  PaddedImage padded = to_float(image, pool), dx, dy;
  spline_gradient(padded, interpolation, dx, dy, pool, band_bytes);
  double largest = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      largest = std::max(largest, std::abs(*dx.at(x, y) - truth.dx(x, y)));
      largest = std::max(largest, std::abs(*dy.at(x, y) - truth.dy(x, y)));
    }
  EXPECT_LT(largest, 5e-4);
}

std::vector<SplineCase> spline_cases() {
  std::vector<SplineCase> cases;
  for (auto interpolation : {Interpolation::cubic, Interpolation::quintic})
    for (auto [w, h] :
         {std::pair{1, 9}, {9, 1}, {1, 1}, {2, 3}, {3, 2}, {7, 31}, {31, 7}, {16, 17}, {1024, 3}, {5, 530}})
      cases.push_back({interpolation, w, h});
  constexpr std::size_t least = 1;  // bands of 64 rows
  for (auto interpolation : {Interpolation::cubic, Interpolation::quintic})
    for (auto [w, h] : {std::pair{19, 64}, {19, 65}, {33, 130}, {5, 530}})
      cases.push_back({interpolation, w, h, least});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Sizes, Spline, testing::ValuesIn(spline_cases()), testing::PrintToStringParamName());

TEST(Spline, ReadsEveryTypeAndPaddedRows) {
  const Image image = random_image(37, 21, 3);
  core::ThreadPool pool(1);
  PaddedImage expected, out;
  spline_coefficients(image, Interpolation::cubic, expected, pool);
  const Image images[] = {
      converted<std::uint8_t>(image, ScalarType::u8), converted<std::uint16_t>(image, ScalarType::u16),
      converted<std::int32_t>(image, ScalarType::i32), converted<double>(image, ScalarType::f64)};
  for (const Image& typed : images) {
    spline_coefficients(typed, Interpolation::cubic, out, pool);
    for (int y = 0; y < 21; ++y)
      for (int x = 0; x < 37; ++x) ASSERT_EQ(*out.at(x, y), *expected.at(x, y)) << to_string(typed.type());
  }
  ImageView left = image;
  left.width = 20;
  spline_coefficients(left, Interpolation::cubic, out, pool);
  const Image cropped = image_of(20, 21, [&](int x, int y) { return image.row<float>(y)[x]; });
  spline_coefficients(cropped, Interpolation::cubic, expected, pool);
  for (int y = 0; y < 21; ++y)
    for (int x = 0; x < 20; ++x) ASSERT_EQ(*out.at(x, y), *expected.at(x, y));
}

/// Reflected element, step by step from the definition.
double naive_reflected(const std::vector<float>& line, int k) {
  const int end = k < 0 ? 0 : static_cast<int>(line.size()) - 1;
  if (line.size() == 1 || (k >= 0 && k <= end)) return line[line.size() == 1 ? 0 : k];
  return 2.0 * line[end] - naive_reflected(line, 2 * end - k);
}

TEST(PointReflection, ContinuesALineHoweverFar) {
  for (const std::vector<float>& line :
       {std::vector<float>{7}, {3, 8}, {1, 5, 2}, {4, 1, 9, 16, 3}, {0, 250, 13, 14, 90, 255, 31}}) {
    const auto n = static_cast<int>(line.size());
    for (int k = -40; k <= 40; ++k)
      ASSERT_EQ(point_reflected([&](int i) { return line.at(i); }, n, k), naive_reflected(line, k))
          << n << " elements, " << k;
  }
}

}  // namespace
}  // namespace dic
