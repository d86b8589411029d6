#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <dic/error.hpp>
#include <dic/track.hpp>
#include <random>
#include <string>
#include <vector>

namespace dic {
namespace {

// The mask as text, a row of '#' and '.' per line.
std::vector<std::string> drawn(const Image& mask) {
  std::vector<std::string> rows;
  for (int y = 0; y < mask.height(); ++y) {
    rows.emplace_back();
    for (int x = 0; x < mask.width(); ++x) rows.back() += mask.row<std::uint8_t>(y)[x] ? '#' : '.';
  }
  return rows;
}

Roi with_polygon(Roi::Polygon polygon) {
  Roi roi;
  roi.polygons.push_back(std::move(polygon));
  return roi;
}

using Rows = std::vector<std::string>;

TEST(Rasterize, NothingGivenIsTheWholeImage) {
  EXPECT_EQ(drawn(rasterize({}, {3, 2})), (Rows{"###", "###"}));
}

TEST(Rasterize, RectangleCoversItsPixels) {
  Roi roi;
  roi.rect = {1, 0, 2, 2};
  EXPECT_EQ(drawn(rasterize(roi, {4, 3})), (Rows{".##.", ".##.", "...."}));
}

TEST(Rasterize, OutlineBelongsToThePolygon) {
  EXPECT_EQ(drawn(rasterize(with_polygon({{1, 1}, {3, 1}, {3, 3}, {1, 3}}), {5, 5})),
            (Rows{".....", ".###.", ".###.", ".###.", "....."}));
  // A triangle whose long edge runs through pixel centres, and whose lowest corner is one.
  EXPECT_EQ(drawn(rasterize(with_polygon({{0, 0}, {4, 0}, {4, 4}}), {5, 5})),
            (Rows{"#####", ".####", "..###", "...##", "....#"}));
}

TEST(Rasterize, CornersBetweenPixelsAreExact) {
  EXPECT_EQ(drawn(rasterize(with_polygon({{0.4, 0.4}, {3.6, 0.4}, {3.6, 2.6}, {0.4, 2.6}}), {5, 4})),
            (Rows{".....", ".###.", ".###.", "....."}));
  // 0.1 + 0.2 is not 0.3 in binary; the pixel centres on this outline still count.
  EXPECT_EQ(
      drawn(rasterize(with_polygon({{0.7 + 0.1 + 0.2, 0}, {2, 0}, {2, 2}, {0.7 + 0.1 + 0.2, 2}}), {4, 3})),
      (Rows{".##.", ".##.", ".##."}));
}

/// Positions of the nodes that are measured.
std::vector<std::pair<int, int>> nodes_of(const Grid& grid) {
  std::vector<std::pair<int, int>> nodes;
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i)
      if (grid.inside[static_cast<std::size_t>(j) * grid.nx + i]) nodes.emplace_back(grid.x(i), grid.y(j));
  return nodes;
}

using Nodes = std::vector<std::pair<int, int>>;

TEST(GridAroundPoints, HasTheNodesThatTheirInterpolationNeeds) {
  const Grid grid = make_grid(rasterize({}, {31, 26}), 5);
  EXPECT_EQ(grid_around(grid, {}), grid);
  EXPECT_EQ(nodes_of(grid_around(grid, {{10, 15}})), (Nodes{{10, 15}}));
  EXPECT_EQ(nodes_of(grid_around(grid, {{10, 17.5}})), (Nodes{{10, 15}, {10, 20}}));
  EXPECT_EQ(nodes_of(grid_around(grid, {{12, 15}})), (Nodes{{10, 15}, {15, 15}}));
  EXPECT_EQ(nodes_of(grid_around(grid, {{1, 1}, {30, 25}})),
            (Nodes{{0, 0}, {5, 0}, {0, 5}, {5, 5}, {30, 25}}));
  EXPECT_EQ(grid_around(grid, {{12, 15}}).nodes(), 2);
}

TEST(GridAroundPoints, PositionsThatCannotBeMeasuredAreRefused) {
  Roi roi;
  roi.rect = {0, 0, 11, 21};
  const Grid grid = make_grid(rasterize(roi, {40, 40}), 5);
  for (const Roi::Vertex& point : {Roi::Vertex{10.5, 5}, {-1, 5}, {5, 20.5}, {NAN, 5}, {5, 1e300}})
    EXPECT_THROW(grid_around(grid, {point}), UsageError) << point.x << ',' << point.y;
  EXPECT_NO_THROW(grid_around(grid, {{10, 20}}));
}

TEST(Rasterize, HolesAndSeveralPolygons) {
  Roi roi = with_polygon({{0, 0}, {2, 0}, {2, 4}, {0, 4}});
  roi.polygons.push_back({{4, 0}, {6, 0}, {6, 4}, {4, 4}});
  roi.holes.push_back({{1, 1}, {5, 1}, {5, 3}, {1, 3}});
  EXPECT_EQ(drawn(rasterize(roi, {7, 5})), (Rows{"###.###", "#.....#", "#.....#", "#.....#", "###.###"}));
}

TEST(Rasterize, PolygonMayReachOutsideTheImage) {
  EXPECT_EQ(drawn(rasterize(with_polygon({{-9e8, -9e8}, {1, -9e8}, {1, 9e8}, {-9e8, 9e8}}), {3, 2})),
            (Rows{"##.", "##."}));
}

TEST(Rasterize, MaskImageOfAnyDepth) {
  Roi roi;
  roi.mask = Image({3, 2}, ScalarType::u16);
  roi.mask.row<std::uint16_t>(1)[2] = 256;
  EXPECT_EQ(drawn(rasterize(roi, {3, 2})), (Rows{"...", "..#"}));
}

// Winding number instead of scanlines: the truth for polygons that do not cross themselves.
bool inside_by_winding(const Roi::Polygon& polygon, double x, double y) {
  int winding = 0;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const auto a = polygon[i], b = polygon[(i + 1) % polygon.size()];
    const double side = (b.x - a.x) * (y - a.y) - (x - a.x) * (b.y - a.y);
    if (a.y <= y && b.y > y && side > 0) ++winding;
    if (a.y > y && b.y <= y && side < 0) --winding;
  }
  return winding != 0;
}

TEST(Rasterize, RandomStarsAgreeWithTheWindingNumber) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> radius(3, 20);
  for (int star = 0; star < 50; ++star) {
    Roi::Polygon polygon;
    for (int corner = 0; corner < 12; ++corner) {
      const double angle = corner * 0.5236, r = radius(random);
      polygon.push_back({20.3 + r * std::cos(angle), 18.7 + r * std::sin(angle)});
    }
    const Image mask = rasterize(with_polygon(polygon), {40, 40});
    for (int y = 0; y < 40; ++y)
      for (int x = 0; x < 40; ++x)
        ASSERT_EQ(mask.row<std::uint8_t>(y)[x] != 0, inside_by_winding(polygon, x, y)) << x << "," << y;
  }
}

TEST(Rasterize, RefusesWhatMakesNoSense) {
  Roi outside;
  outside.rect = {5, 5, 10, 10};
  EXPECT_THROW(rasterize(outside, {10, 10}), UsageError);
  EXPECT_THROW(rasterize(with_polygon({{0, 0}, {1, 1}}), {10, 10}), UsageError);
  EXPECT_THROW(rasterize(with_polygon({{0, 0}, {1, 1}, {NAN, 2}}), {10, 10}), UsageError);
  EXPECT_THROW(rasterize(with_polygon({{20, 20}, {30, 20}, {30, 30}}), {10, 10}), UsageError) << "empty";
  Roi mask;
  mask.mask = Image({9, 10}, ScalarType::u8);
  EXPECT_THROW(rasterize(mask, {10, 10}), UsageError);
}

TEST(MakeGrid, StartsAtTheCornerOfTheBoundingBox) {
  Roi roi = with_polygon({{3, 2}, {12, 2}, {3, 8}});
  const Image mask = rasterize(roi, {20, 10});
  const Grid grid = make_grid(mask, 4);
  EXPECT_EQ(grid.x0, 3);
  EXPECT_EQ(grid.y0, 2);
  ASSERT_EQ(grid.nx, 3);
  ASSERT_EQ(grid.ny, 2);
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i)
      EXPECT_EQ(grid.inside[j * grid.nx + i] != 0, mask.row<std::uint8_t>(grid.y(j))[grid.x(i)] != 0);
  EXPECT_EQ(grid.points(), 3 + 1);
}

}  // namespace
}  // namespace dic
