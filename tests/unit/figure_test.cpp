#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <dic/draw.hpp>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <opencv2/imgcodecs.hpp>

#include "io/hdf5_file.hpp"
#include "support/io_files.hpp"

// Tests pictures of fields.
namespace dic {
namespace {

using namespace test;

Image grey_image(int width, int height, ScalarType type = ScalarType::u8) {
  Image image({width, height}, type);
  visit_scalar(type, [&]<typename T>(T) {
    for (int y = 0; y < height; ++y) std::fill_n(image.row<T>(y), width, T(120));
  });
  return image;
}

bool coloured(const cv::Mat& drawing, int x, int y) {
  const auto& pixel = drawing.at<cv::Vec3b>(y, x);
  return std::abs(pixel[0] - pixel[1]) + std::abs(pixel[1] - pixel[2]) > 20;
}

/// A block of points that moved 200 px to the right and 100 px down is drawn at its new position, without its
/// missing point.
TEST_F(Io, FieldPictureDrawsPointsWhereTheyAre) {
  Grid grid;
  grid.x0 = 100, grid.y0 = 300, grid.step = 20, grid.nx = grid.ny = 11;
  grid.inside.assign(121, 1);
  Field field(grid);
  std::vector<float> values(121, kNan);
  for (std::size_t k = 0; k < 121; ++k) {
    if (k == 60) continue;  // the middle: (200, 400)
    field.status[k] = Status::ok;
    field.u[k] = 200, field.v[k] = 100;
    values[k] = static_cast<float>(k);
  }
  write_field_picture(file("u.png"), grey_image(800, 700), field, values,
                      {.symbol = "u", .unit = "px", .smooth = false});
  const cv::Mat drawing = cv::imread(file("u.png").string());
  ASSERT_GT(drawing.cols, 800);
  ASSERT_GE(drawing.rows, 700);
  const int frame = 8;  // 0.6 of the font
  const auto at = [&](int x, int y) { return coloured(drawing, x + frame, y + frame); };
  EXPECT_TRUE(at(300, 400) && at(500, 600) && at(450, 450));
  EXPECT_TRUE(at(292, 392)) << "cells reach half a step further";
  EXPECT_FALSE(at(285, 400) || at(515, 500)) << "and no further";
  EXPECT_FALSE(at(110, 310)) << "where the points were";
  EXPECT_FALSE(at(400, 500)) << "the missing point";
  EXPECT_FALSE(at(100, 600)) << "outside";
}

TEST_F(Io, FieldPictureOfAnySize) {
  for (const auto& [width, height] : {std::pair{16, 16}, {3000, 40}, {40, 3000}, {2600, 2000}}) {
    Grid grid;
    grid.step = 8, grid.nx = width / 8, grid.ny = height / 8;
    grid.inside.assign(grid.nodes(), 1);
    Field field(grid);
    std::fill(field.u.begin(), field.u.end(), 0.0), std::fill(field.v.begin(), field.v.end(), 0.0);
    std::fill(field.status.begin(), field.status.end(), Status::ok);
    const std::vector<float> constant(grid.nodes(), 0.0f), missing(grid.nodes(), kNan);
    for (const auto& values : {constant, missing})
      for (const ScalarType type : {ScalarType::u8, ScalarType::u16, ScalarType::f32}) {
        write_field_picture(file("a.png"), grey_image(width, height, type), field, values,
                            {.symbol = "ε_xx"});
        const cv::Mat drawing = cv::imread(file("a.png").string());
        EXPECT_GE(std::max(drawing.rows, drawing.cols), 480);
        EXPECT_LE(drawing.cols, 1000);
        EXPECT_LE(drawing.rows, 1000);
      }
  }
}

TEST(RangeFinder, LeavesOutHalfAPercentOnBothSides) {
  RangeFinder finder;
  std::vector<float> values;
  for (int k = 0; k <= 1000; ++k) values.push_back(static_cast<float>((k * 2) % 1001));
  values.push_back(kNan);
  finder.add(values);
  EXPECT_DOUBLE_EQ(finder.range()->min, 5);
  EXPECT_DOUBLE_EQ(finder.range()->max, 995);
  EXPECT_DOUBLE_EQ(finder.extremes()->min, 0);
  EXPECT_DOUBLE_EQ(finder.extremes()->max, 1000);
}

TEST(RangeFinder, SamplesWhatIsMore) {
  RangeFinder finder;
  std::vector<float> values(100000);
  for (int part = 0; part < 30; ++part) {
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = static_cast<float>((k * 7919 + part) % values.size()) / 100000;
    finder.add(values);
  }
  EXPECT_NEAR(finder.range()->min, 0.005, 1e-3);
  EXPECT_NEAR(finder.range()->max, 0.995, 1e-3);
}

TEST_F(Io, FieldPictureRefusesAnotherGrid) {
  Grid grid;
  grid.nx = grid.ny = 2;
  grid.inside.assign(4, 1);
  const std::vector<float> values(3);
  EXPECT_THROW(write_field_picture(file("a.png"), grey_image(9, 9), Field(grid), values, {}),
               dic::UsageError);
  EXPECT_THROW(write_field_picture(file("a.png"), grey_image(9, 9), Field(grid), std::vector<float>(4),
                                   {.symbol = "u", .unit = "px", .range = {{2, 2}}}),
               dic::UsageError);
  expect_file_error(
      [&] {
        write_field_picture(file("no/a.png"), grey_image(9, 9), Field(grid), std::vector<float>(4), {});
      },
      "no/a.png");
}

}  // namespace
}  // namespace dic
