#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/refine.hpp>
#include <dic/shared/shape.hpp>

#include "support/refine_support.hpp"

// Tests subsets that the border of the image or the ROI cuts.
namespace dic {
namespace {

using namespace test;

TEST(Refiner, SubsetsCutByTheBorderUseThePixelsInside) {
  constexpr int kWidth = 130, kHeight = 110;
  // A motion towards the inside, so that every cut subset stays in the image.
  const ShapeParameters shrink = affine(0, 0, 0, 0);
  ShapeParameters field = shrink;
  field.ux = field.vy = -0.02;
  const auto pair = speckle_pair(kWidth, kHeight, 1.7, 10, shape_field(field, kWidth / 2, kHeight / 2));
  const Points points{{0, 0, 129, 129, 5, 65, 65, 3, 126}, {40, 55, 40, 55, 50, 0, 109, 60, 50}};
  const Refiner refiner = refiner_of(options_of(33, 1), pair.reference, pair.current, points);
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    const ShapeParameters truth = moved_centre(field, points.x[i] - kWidth / 2, points.y[i] - kHeight / 2);
    const RefinedPoint p = refiner.refine(i, start_at(std::round(truth.u), std::round(truth.v)));
    ASSERT_EQ(p.status, Status::ok) << points.x[i] << ", " << points.y[i];
    EXPECT_NEAR(p.shape.u, truth.u, 0.01) << points.x[i] << ", " << points.y[i];
    EXPECT_NEAR(p.shape.v, truth.v, 0.01) << points.x[i] << ", " << points.y[i];
  }
}

TEST(Refiner, LessThanHalfInsideTheReferenceIsOutOfImage) {
  const auto pair = speckle_pair(100, 100, 1.7, 10, translation(0, 0));
  const Points points{{0, 0, 99, 50, -1, 100, -40}, {0, 4, 99, 50, 50, 50, 50}};
  const Refiner refiner = refiner_of(options_of(33, 1), pair.reference, pair.current, points);
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    const Status expected = points.x[i] == 50 && points.y[i] == 50 ? Status::ok : Status::out_of_image;
    EXPECT_EQ(refiner.reference_status(i), expected) << points.x[i] << ", " << points.y[i];
    EXPECT_EQ(refiner.refine(i, {}).status, expected) << points.x[i] << ", " << points.y[i];
  }
}

TEST(Refiner, SubsetsCutByTheRoiUseThePixelsInside) {
  constexpr int kSize = 120;
  // Left of x = 60 the material moves by 0.3 px, right of it by 2.3 px.
  const auto pair = speckle_pair(kSize, kSize, 1.7, 12, [](double x, double) {
    return std::array{x < 60 ? 0.3 : 2.3, 0.1};
  });
  Image roi({kSize, kSize}, ScalarType::u8);
  for (int y = 0; y < kSize; ++y) std::fill_n(roi.row<std::uint8_t>(y), 60, std::uint8_t{1});
  const RefinedPoint cut = refine_one(options_of(33, 0), pair.reference, pair.current, 55, 60, {}, roi);
  ASSERT_EQ(cut.status, Status::ok);
  EXPECT_NEAR(cut.shape.u, 0.3, 0.01);
  EXPECT_NEAR(cut.shape.v, 0.1, 0.01);
  EXPECT_GT(cut.zncc, 0.99f);
  const RefinedPoint whole = refine_one(options_of(33, 0), pair.reference, pair.current, 55, 60);
  EXPECT_LT(whole.zncc, 0.95f);
}

TEST(Refiner, OnlyThePixelsInsideTheRoiMustStayInTheImage) {
  constexpr int kSize = 120;
  const auto pair = speckle_pair(kSize, kSize, 1.7, 12, translation(15.3, 0));
  const auto roi_up_to = [](int columns) {
    Image roi({kSize, kSize}, ScalarType::u8);
    for (int y = 0; y < kSize; ++y) std::fill_n(roi.row<std::uint8_t>(y), columns, std::uint8_t{1});
    return roi;
  };
  // The subset has columns 79 to 111, the ROI only those up to 99; displaced, the subset would end at 126.
  const auto status = [&](const Image& roi) {
    return refine_one(options_of(33, 0), pair.reference, pair.current, 95, 60, {.u = 15}, roi).status;
  };
  EXPECT_EQ(status(roi_up_to(100)), Status::ok);
  EXPECT_EQ(status(roi_up_to(kSize)), Status::out_of_image);
}

TEST(Refiner, LessThanHalfInsideTheRoiIsMasked) {
  const auto pair = speckle_pair(100, 100, 1.7, 12, translation(0.3, 0));
  Image roi({100, 100}, ScalarType::u8);
  for (int y = 0; y < 100; ++y) std::fill_n(roi.row<std::uint8_t>(y), 50, std::uint8_t{255});
  const Points points{{49, 50, 51, 90}, {50, 50, 50, 50}};  // 17, 16, 15 and 0 of 33 columns
  const Refiner refiner = refiner_of(options_of(33, 1), pair.reference, pair.current, points, roi);
  const Status expected[] = {Status::ok, Status::masked, Status::masked, Status::masked};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(refiner.reference_status(i), expected[i]) << i;
    EXPECT_EQ(refiner.refine(i, {}).status, expected[i]) << i;
  }
}

TEST(Refiner, AWholeRoiChangesNothing) {
  const auto pair = speckle_pair(100, 100, 1.7, 12, translation(0.3, 0.2));
  Image roi({100, 100}, ScalarType::u8);
  for (int y = 0; y < 100; ++y) std::fill_n(roi.row<std::uint8_t>(y), 100, std::uint8_t{7});
  const RefinedPoint with = refine_one(options_of(33, 1), pair.reference, pair.current, 50, 50, {}, roi);
  const RefinedPoint without = refine_one(options_of(33, 1), pair.reference, pair.current, 50, 50);
  EXPECT_EQ(with.shape.u, without.shape.u);
  EXPECT_EQ(with.zncc, without.zncc);
}

/// Lanes of a vector past the subset's own columns may point anywhere: they must neither be read nor count.
TEST(Refiner, TurnedSubsetsAtTheEdgeUseTheirOwnPixelsOnly) {
  constexpr int kSize = 41;
  const auto pair = speckle_pair(kSize, kSize, 1.7, 18, translation(0, 0));
  const NaiveSpline spline(pair.current, Interpolation::cubic);
  const Points points{{10, 15, 20, 30}, {15, 20, 20, 30}};
  const Refiner refiner = refiner_of(options_of(21, 1), pair.reference, pair.current, points);
  int measured = 0;
  for (int i = 0; i < 4; ++i)
    for (int angle = 0; angle < 360; angle += 15) {
      const RefinedPoint p = refiner.refine(i, affine(0, 0, angle, 0));
      if (p.status != Status::ok) continue;
      EXPECT_NEAR(p.zncc, naive_zncc(pair.reference, spline, points.x[i], points.y[i], 10, p.shape), 1e-3);
      ++measured;
    }
  EXPECT_GE(measured, 4);
}

}  // namespace
}  // namespace dic
