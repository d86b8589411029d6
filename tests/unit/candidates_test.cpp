#include "match/candidates.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <dic/match.hpp>

#include "match/box.hpp"
#include "support/match_support.hpp"

// Tests overlaps of boxes, and local maxima of a surface.
namespace dic {
namespace {

using namespace test;

Match box_at(double x, double y, int width, int height, double rotation_deg = 0, double scale = 1) {
  Match match;
  match.x = x;
  match.y = y;
  match.width = width;
  match.height = height;
  match.rotation_deg = rotation_deg;
  match.scale = scale;
  match.center_x = (box_corners(match)[0][0] + box_corners(match)[2][0]) / 2;
  match.center_y = (box_corners(match)[0][1] + box_corners(match)[2][1]) / 2;
  return match;
}

TEST(Box, OverlapOfKnownBoxes) {
  EXPECT_NEAR(match::box_overlap(box_at(3, 4, 10, 6), box_at(3, 4, 10, 6)), 1, 1e-12);
  EXPECT_NEAR(match::box_overlap(box_at(0, 0, 10, 10), box_at(5, 0, 10, 10)), 1.0 / 3, 1e-12);
  EXPECT_EQ(match::box_overlap(box_at(0, 0, 10, 10), box_at(10, 0, 10, 10)), 0);
  EXPECT_NEAR(match::box_overlap(box_at(0, 0, 10, 10), box_at(0, 0, 10, 10, 0, 0.5)), 0.25, 0.02);
  // A square and itself turned by 45 degrees share a regular octagon of 2 (sqrt 2 - 1) times its area.
  Match square = box_at(0, 0, 10, 10), turned = box_at(0, 0, 10, 10, 45);
  turned.x += square.center_x - turned.center_x;
  turned.y += square.center_y - turned.center_y;
  turned.center_x = square.center_x;
  turned.center_y = square.center_y;
  const double octagon = 2 * (std::sqrt(2.0) - 1);
  EXPECT_NEAR(match::box_overlap(square, turned), octagon / (2 - octagon), 1e-9);
}

TEST(Candidates, AreTheLocalMaximaOfASurface) {
  std::vector<float> values(7 * 5, 0.0f);
  const auto at = [&](int x, int y) -> float& { return values[y * 7 + x]; };
  at(0, 0) = 0.5f;
  at(3, 2) = 0.9f;
  at(4, 2) = 0.8f;
  at(6, 4) = 0.7f;
  core::ThreadPool pool(2);
  const match::SurfaceView surface{values.data(), 7, 5};
  const auto found = match::find_candidates(surface, 0.4, pool);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].x, 3);
  EXPECT_EQ(found[0].y, 2);
  EXPECT_GT(found[0].offset_x, 0);
  EXPECT_GT(found[0].estimate, 0.9);
  EXPECT_EQ(found[1].x, 6);
  EXPECT_EQ(found[2].x, 0);
  const auto highest = match::find_candidates(surface, 2, pool);
  ASSERT_EQ(highest.size(), 1U);
  EXPECT_EQ(highest[0].x, 3);
}

}  // namespace
}  // namespace dic
