#include "io/chart.hpp"

#include <algorithm>
#include <cmath>

#include "io/canvas.hpp"

namespace dic::io {
namespace {

constexpr int kWidth = 1040, kHeight = 620;  // px
constexpr int kLeft = 80, kTop = 60, kRight = 330, kBottom = 70;

/// An axis from `min` to `max` along `length` px.
struct Axis {
  double min, max, length;
  bool logarithmic;

  double at(double value) const {
    return length * (logarithmic ? std::log(value / min) / std::log(max / min) : (value - min) / (max - min));
  }
  /// 1, 2 and 5 times the powers of ten, or some eight round numbers.
  std::vector<double> ticks() const { return logarithmic ? decades() : round_numbers(); }

 private:
  std::vector<double> decades() const {
    std::vector<double> found;
    for (double power = std::pow(10, std::floor(std::log10(min))); power <= max; power *= 10)
      for (const double factor : {1.0, 2.0, 5.0})
        if (factor * power >= min && factor * power <= max) found.push_back(factor * power);
    return found;
  }
  std::vector<double> round_numbers() const {
    const double wanted = (max - min) / 8, power = std::pow(10, std::floor(std::log10(wanted)));
    const double spacing = power * (wanted <= 2 * power ? 2 : wanted <= 5 * power ? 5 : 10);
    std::vector<double> found;
    for (double k = std::ceil(min / spacing); k * spacing <= max; ++k) found.push_back(k * spacing);
    return found;
  }
};

/// The range of one coordinate over `shown` and all points, with a margin.
Axis axis_of(const Chart& chart, std::vector<double> shown, double std::pair<double, double>::*coordinate,
             double length, bool logarithmic) {
  for (const Series& series : chart.series)
    for (const auto& point : series.points) shown.push_back(point.*coordinate);
  const auto [least, most] = std::minmax_element(shown.begin(), shown.end());
  constexpr double kAir = 0.05;  // of the axis, on both sides
  if (!logarithmic) {
    const double air = *most > *least ? kAir * (*most - *least) : 1;
    return {*least - air, *most + air, length, false};
  }
  constexpr double kFactor = 1.15;
  return {*least / kFactor, *most * kFactor, length, true};
}

std::vector<double> marks_of(const Chart& chart) {
  return chart.y_mark > 0 ? std::vector<double>{chart.y_mark} : std::vector<double>{};
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart)
      : chart_(chart),
        canvas_(kWidth, kHeight),
        x_(axis_of(chart, chart.x_ticks, &std::pair<double, double>::first, kWidth - kLeft - kRight,
                   chart.log_x)),
        y_(axis_of(chart, marks_of(chart), &std::pair<double, double>::second, kHeight - kTop - kBottom,
                   chart.log_y)) {}

  void write(const std::filesystem::path& path) {
    draw_x_axis();
    draw_y_axis();
    for (std::size_t k = 0; k < chart_.series.size(); ++k) draw_series(k);
    canvas_.text(chart_.title, {kLeft, 34}, 0.55);
    canvas_.write(path);
  }

 private:
  cv::Point2d place(double x, double y) const { return {kLeft + x_.at(x), kHeight - kBottom - y_.at(y)}; }

  /// Labels that would overlap the previous one are left out.
  void draw_x_axis() {
    double free_from = 0;
    for (const double tick : chart_.x_ticks) {
      const cv::Point2d foot = place(tick, y_.min);
      canvas_.line(foot, {foot.x, kTop}, Canvas::kGridLine, 1);
      const std::string label = short_number(tick);
      const double width = Canvas::width_of(label, 0.45);
      if (foot.x - width / 2 < free_from) continue;
      canvas_.text(label, {foot.x - width / 2, foot.y + 20}, 0.45);
      free_from = foot.x + width / 2 + 6;
    }
    canvas_.text(chart_.x_label,
                 {kLeft + (x_.length - Canvas::width_of(chart_.x_label, 0.5)) / 2, kHeight - 20}, 0.5);
  }

  void draw_y_axis() {
    for (const double value : y_.ticks()) {
      const cv::Point2d start = place(x_.min, value);
      canvas_.line(start, {start.x + x_.length, start.y},
                   value == chart_.y_mark ? Canvas::kInk : Canvas::kGridLine, 1);
      const std::string label = short_number(value);
      canvas_.text(label, {start.x - 8 - Canvas::width_of(label, 0.45), start.y + 5}, 0.45);
    }
    canvas_.text(chart_.y_label, {8, kTop - 8}, 0.45);
  }

  void draw_series(std::size_t k) {
    const cv::Scalar colour = Canvas::colour(k);
    const Series& series = chart_.series[k];
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const cv::Point2d here = place(series.points[i].first, series.points[i].second);
      if (series.line && i > 0)
        canvas_.line(place(series.points[i - 1].first, series.points[i - 1].second), here, colour, 2);
      canvas_.disc(here, 4, colour);
    }
    const double y = kTop + 12 + 22.0 * static_cast<double>(k), x = kWidth - kRight + 16;
    canvas_.line({x, y}, {x + 24, y}, colour, 3);
    canvas_.text(series.name, {x + 32, y + 5}, 0.45);
  }

  const Chart& chart_;
  Canvas canvas_;
  Axis x_, y_;
};

}  // namespace

void write_chart(const std::filesystem::path& path, const Chart& chart) { Drawing(chart).write(path); }

}  // namespace dic::io
