#include <gtest/gtest.h>

#include <cmath>
#include <dic/draw.hpp>
#include <opencv2/imgcodecs.hpp>
#include <random>

#include "draw/cell_raster.hpp"
#include "figures/cairo_canvas.hpp"
#include "support/io_files.hpp"

// Tests images on canvases, and the cells of points in them.
namespace dic {
namespace {

using namespace test;

constexpr int kWidth = 23, kHeight = 17;  // size of the image, px

std::uint8_t channel(int x, int y, int c) { return static_cast<std::uint8_t>(40 + 9 * x + 3 * y + 70 * c); }

void write_row(int y, std::span<std::uint8_t> rgb) {
  ASSERT_EQ(std::ssize(rgb), 3 * kWidth);
  for (int x = 0; x < kWidth; ++x)
    for (int c = 0; c < 3; ++c) rgb[3 * x + c] = channel(x, y, c);
}

/// Expects the image at this place, and white paper around it.
void expect_image_at(const cv::Mat& drawing, int left, int top) {
  for (int y = 0; y < drawing.rows; ++y)
    for (int x = 0; x < drawing.cols; ++x)
      for (int c = 0; c < 3; ++c) {
        const bool inside = x >= left && x < left + kWidth && y >= top && y < top + kHeight;
        ASSERT_EQ(drawing.at<cv::Vec3b>(y, x)[2 - c], inside ? channel(x - left, y - top, c) : 255)
            << x << ", " << y << " of an image at " << left << ", " << top;
      }
}

TEST_F(Io, CanvasShowsAnImageByRowsWhereItIsOnThePaper) {
  for (const CanvasFactory& canvases : {png_canvases(), figures::canvases(figures::Format::png)})
    for (const auto& [x, y] : {std::pair{5.0, 8.0},
                               {-4.6, 8.0},
                               {30.3, 8.0},
                               {5.0, -3.4},
                               {5.0, 25.0},
                               {-2.0, -2.0},
                               {0.0, 100.0},
                               {-100.0, 0.0}}) {
      const auto canvas = canvases(40, 30);
      canvas->image({{kWidth, kHeight}, write_row}, {x, y});
      canvas->write(file("a.png"));
      const cv::Mat drawing = cv::imread(file("a.png").string());
      ASSERT_EQ(drawing.size(), cv::Size(40, 30));
      expect_image_at(drawing, static_cast<int>(std::lround(x)), static_cast<int>(std::lround(y)));
    }
}

/// Drawings made before and after an image stay.
TEST_F(Io, CanvasDrawsUnderAndOverAnImage) {
  const Canvas::Point square[] = {{0, 0}, {10, 0}, {10, 10}, {0, 10}};
  for (const CanvasFactory& canvases : {png_canvases(), figures::canvases(figures::Format::png)}) {
    const auto canvas = canvases(60, 40);
    canvas->polygon(square, {255, 0, 0});
    canvas->image({{kWidth, kHeight}, write_row}, {5, 5});
    canvas->disc({20, 15}, 4, {0, 0, 255});
    canvas->write(file("a.png"));
    const cv::Mat drawing = cv::imread(file("a.png").string());
    EXPECT_EQ(drawing.at<cv::Vec3b>(2, 2), cv::Vec3b(0, 0, 255));
    EXPECT_EQ(drawing.at<cv::Vec3b>(7, 7), cv::Vec3b(channel(2, 2, 2), channel(2, 2, 1), channel(2, 2, 0)));
    EXPECT_EQ(drawing.at<cv::Vec3b>(15, 20), cv::Vec3b(255, 0, 0));
  }
}

/// If all nodes move alike, a pixel shows the nearest one.
TEST(CellRaster, PixelsShowTheNearestPoint) {
  Grid grid;
  grid.x0 = 20, grid.y0 = 15, grid.step = 7, grid.nx = 9, grid.ny = 6;
  grid.inside.assign(grid.nodes(), 1);
  constexpr double kU = 3.3, kV = -2.2;
  const draw::MovedGrid moved(grid, std::vector<double>(grid.nodes(), kU),
                              std::vector<double>(grid.nodes(), kV));
  const draw::CellRaster raster(moved, 1, {100, 60});
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 100; ++x) {
      const long i = std::lround((x - grid.x0 - kU) / grid.step),
                 j = std::lround((y - grid.y0 - kV) / grid.step);
      const bool inside = i >= 0 && i < grid.nx && j >= 0 && j < grid.ny;
      ASSERT_EQ(raster.row(y)[x].node, inside ? (j + 1) * raster.stride() + i + 1 : 0) << x << ", " << y;
    }
}

TEST(CellRaster, HasNoGapsWherePointsMovedAtRandom) {
  Grid grid;
  grid.x0 = grid.y0 = 10, grid.step = 5, grid.nx = grid.ny = 30;
  grid.inside.assign(grid.nodes(), 1);
  std::mt19937 random(5);
  std::uniform_real_distribution<double> moved(-1, 1);
  std::vector<double> u(grid.nodes()), v(grid.nodes());
  std::ranges::generate(u, [&] { return moved(random); });
  std::ranges::generate(v, [&] { return moved(random); });
  const draw::MovedGrid nodes(grid, u, v);
  const draw::CellRaster raster(nodes, 2, {340, 340});
  for (int y = 24; y < 306; ++y)
    for (int x = 24; x < 306; ++x) ASSERT_NE(raster.row(y)[x].node, 0) << x << ", " << y;
}

/// Compares with a mean computed by hand.
TEST(CellPainter, MixesColoursAndPictureByTheOpacity) {
  Grid grid;
  grid.x0 = grid.y0 = 5, grid.step = 10, grid.nx = 2, grid.ny = 1;
  grid.inside.assign(2, 1);
  const std::vector<double> still(2, 0.0);
  const draw::MovedGrid nodes(grid, still, still);
  const draw::CellRaster raster(nodes, 1, {20, 10});
  const draw::ColourScale scale({0, 255}, ColourMap::grey);
  const std::vector<float> values{40, kNan};
  const std::vector<std::uint8_t> grey(20, 200);
  for (const double opacity : {0.0, 0.25, 0.5, 1.0})
    for (const bool smooth : {false, true}) {
      std::vector<std::uint8_t> rgb(60);
      draw::CellPainter(raster, values, scale, smooth, opacity).paint(5, grey.data(), rgb.data());
      for (int c = 0; c < 3; ++c) {
        EXPECT_EQ(rgb[3 * 4 + c], std::lround(200 + (40 - 200) * opacity));
        EXPECT_EQ(rgb[3 * 15 + c], 200) << "a point without a value";
      }
    }
}

/// Between two points colours change as the values do.
TEST(ColourScale, TakesTheNarrowestRange) {
  for (const double width : {1e-3, 1e-290, 1e-310}) {
    const draw::ColourScale scale({0, width}, ColourMap::grey);
    EXPECT_EQ(scale.colour(-1).r, 0);
    EXPECT_EQ(scale.colour(0).r, 0);
    EXPECT_TRUE(std::isfinite(scale.place(width)));
  }
  EXPECT_EQ(draw::ColourScale({0, 1e-290}, ColourMap::grey).colour(1e-290).r, 255);
}

TEST(CellPainter, IsBilinearBetweenPoints) {
  Grid grid;
  grid.x0 = grid.y0 = 10, grid.step = 20, grid.nx = grid.ny = 2;
  grid.inside.assign(4, 1);
  const std::vector<double> still(4, 0.0);
  const draw::MovedGrid nodes(grid, still, still);
  const draw::CellRaster raster(nodes, 1, {40, 40});
  const draw::ColourScale scale({0, 255}, ColourMap::grey);
  const std::vector<float> values{20, 120, 60, 240};
  const std::vector<std::uint8_t> grey(40);
  for (int y = 10; y <= 30; ++y) {
    std::vector<std::uint8_t> rgb(120);
    draw::CellPainter(raster, values, scale, true, 1).paint(y, grey.data(), rgb.data());
    for (int x = 10; x <= 30; ++x) {
      const double s = (x - 10) / 20.0, t = (y - 10) / 20.0;
      const double exact = (1 - t) * ((1 - s) * 20 + s * 120) + t * ((1 - s) * 60 + s * 240);
      EXPECT_NEAR(rgb[3 * x], exact, 1.5) << x << ", " << y;  // positions in cells have 8 bits
    }
  }
}

}  // namespace
}  // namespace dic
