#include "draw/chart.hpp"
#include "draw/ticks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

namespace dic::draw {
namespace {

/// Counts discs, and checks that everything drawn has a finite position.
class CountingCanvas : public Canvas {
 public:
  explicit CountingCanvas(int& discs) : discs_(discs) {}

  double resolution() const override { return 1; }
  void polyline(std::span<const Point> points, Colour, double) override {
    for (const Point& p : points) expect_place(p);
  }
  void polygon(std::span<const Point> points, Colour) override {
    for (const Point& p : points) expect_place(p);
  }
  void disc(Point centre, double, Colour) override {
    expect_place(centre);
    ++discs_;
  }
  void image(const RgbRows&, Point corner) override { expect_place(corner); }
  void text(std::string_view, Point at, double, Colour, Align) override { expect_place(at); }
  double width_of(std::string_view words, double size) const override {
    return static_cast<double>(words.size()) * size;
  }
  void write(const std::filesystem::path&) override {}

 private:
  static void expect_place(Point p) {
    EXPECT_TRUE(std::abs(p.x) < 1e4 && std::abs(p.y) < 1e4) << p.x << ", " << p.y;
  }

  int& discs_;
};

int discs_of(std::vector<std::pair<double, double>> points) {
  int discs = 0;
  Chart chart;
  chart.x_ticks = {0, 1};
  chart.series = {{"a", std::move(points)}};
  chart.log_x = chart.log_y = false;
  write_chart("chart.png", chart, [&](double, double) { return std::make_unique<CountingCanvas>(discs); });
  return discs;
}

TEST(Chart, ValuesWithoutAPlaceAreLeftOut) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(discs_of({{0, 1}, {0.5, inf}, {1, 2}}), 2);
  EXPECT_EQ(discs_of({{0, NAN}, {inf, 1}, {1, 2}}), 1);
  EXPECT_EQ(discs_of({{0, -1e308}, {1, 1e308}}), 0);
}

TEST(Chart, ZeroHasNoSign) {
  EXPECT_EQ(short_number(-0.0), "0");
  EXPECT_EQ(short_number(-0.5), "-0.5");
}

}  // namespace
}  // namespace dic::draw
