#include "fields/points.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/synth.hpp>

#include "core/parallel.hpp"
#include "track/backend.hpp"

// Points, which may lie between pixels, and references that are made from them.
namespace dic::track {
namespace {

constexpr int kSize = 160;

Grid inner_grid() {
  Image roi({kSize, kSize}, ScalarType::u8);
  for (int y = 40; y < 120; ++y) std::fill_n(roi.row<std::uint8_t>(y) + 40, 80, std::uint8_t{255});
  return make_grid(roi, 8);
}

/// Nodes displaced by (dx, dy) px.
Points displaced(double dx, double dy) {
  const Points nodes(inner_grid());
  std::vector<double> x, y;
  for (std::int64_t point = 0; point < nodes.size(); ++point) {
    x.push_back(nodes.x[point] + dx);
    y.push_back(nodes.y[point] + dy);
  }
  return {nodes.nodes, x, y};
}

TEST(Points, OfAGridAreItsNodes) {
  const Points points(inner_grid());
  EXPECT_EQ(points.size(), 100);
  EXPECT_TRUE(points.are_nodes());
  EXPECT_TRUE(points.offsets.empty());
  EXPECT_EQ(points.x[11] - points.x[0], 8);
  EXPECT_EQ(points.y[11] - points.y[0], 8);
}

TEST(Points, BetweenPixelsHaveOffsets) {
  const Points nodes(inner_grid()), points = displaced(0.25, -0.75);
  EXPECT_FALSE(points.are_nodes());
  EXPECT_EQ(points.x[5], nodes.x[5]);
  EXPECT_EQ(points.y[5], nodes.y[5] - 1);
  EXPECT_EQ(points.offset(5).dx, 0.25);
  EXPECT_EQ(points.offset(5).dy, 0.25);
}

TEST(Points, AtOtherPixelsHaveNoOffsets) {
  const Points points = displaced(3, -2);
  EXPECT_FALSE(points.are_nodes());
  EXPECT_TRUE(points.offsets.empty());
  EXPECT_TRUE(displaced(0, 0).are_nodes());
}

/// Measures a stretched frame at points of the reference.
class ReferenceOfPoints : public ::testing::Test {
 protected:
  ReferenceOfPoints() {
    synth_.size = {kSize, kSize};
    synth_.noise = 0;
    synth_.motion = {.kind = MotionKind::affine, .u = 1.3, .v = -0.6, .ux = 0.02, .vy = -0.01};
    synth_.motion.cx = synth_.motion.cy = (kSize - 1) / 2.0;
    synth_.amounts = {0, 1};
    options_.device = "cpu";
    options_.refine.subset = 21;
  }

  Field measured(const Points& points) {
    const Image reference = synth_frame(synth_, 0), current = synth_frame(synth_, 1);
    core::ThreadPool pool(1);
    const auto backend =
        open_cpu(options_, {*points.nodes, analysis_, {kSize, kSize}}, StrainBy::last_step, pool);
    const auto active =
        backend->make_reference(backend->take(reference.view()), *backend->place(points), nullptr);
    return active->measure(backend->take(current.view()), {}, {})->fetch().result.field;
  }

  SynthOptions synth_;
  TrackOptions options_;
  ReferenceAnalysis analysis_;
};

TEST_F(ReferenceOfPoints, MeasuresWhereThePointsLie) {
  for (const auto& [dx, dy] : {std::pair(0.0, 0.0), {5.0, -3.0}, {0.4, -0.3}, {-7.5, 6.2}}) {
    const Points points = displaced(dx, dy);
    const Field field = measured(points);
    double mean_u = 0, mean_v = 0;
    for (std::int64_t point = 0; point < points.size(); ++point) {
      const std::int64_t node = points.nodes->node_of[point];
      const auto [ox, oy] = points.offset(point);
      ASSERT_EQ(field.status[node], Status::ok) << dx << ", " << dy;
      const double x = points.x[point] + ox - synth_.motion.cx, y = points.y[point] + oy - synth_.motion.cy;
      const double error_u = field.u[node] - (1.3 + 0.02 * x), error_v = field.v[node] - (-0.6 - 0.01 * y);
      EXPECT_LT(std::abs(error_u), 5 * field.sigma_u[node]) << dx << ", " << dy;
      EXPECT_LT(std::abs(error_v), 5 * field.sigma_v[node]) << dx << ", " << dy;
      mean_u += error_u / static_cast<double>(points.size());
      mean_v += error_v / static_cast<double>(points.size());
    }
    // Half a pixel of offset that is left out makes 0.01 px of u and 0.005 px of v.
    EXPECT_NEAR(mean_u, 0, 0.001) << dx << ", " << dy;
    EXPECT_NEAR(mean_v, 0, 0.001) << dx << ", " << dy;
  }
}

TEST_F(ReferenceOfPoints, KnowsPointsOutsideOfTheImage) {
  const Field field = measured(displaced(-60.5, 0));
  EXPECT_EQ(std::ranges::count(field.status, Status::out_of_image), 30);
}

}  // namespace
}  // namespace dic::track
