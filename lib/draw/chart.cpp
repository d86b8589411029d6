#include "draw/chart.hpp"

#include <algorithm>
#include <cmath>

#include "draw/palette.hpp"
#include "draw/ticks.hpp"

namespace dic::draw {
namespace {

constexpr int kWidth = 1040, kHeight = 620;  // size of a chart, units of the canvas
constexpr double kFont = 13, kLargeFont = 15;
constexpr int kLeft = 80, kTop = 60, kBottom = 70;
constexpr double kSign = 48;  // room of a series' sign in the legend, with the gaps around it

/// An axis from `min` to `max` along `length` px.
struct Axis {
  double min, max, length;
  bool logarithmic;

  double at(double value) const {
    return length * (logarithmic ? std::log(value / min) / std::log(max / min) : (value - min) / (max - min));
  }
  /// The ticks: 1, 2 and 5 times powers of ten on logarithmic axes, otherwise about eight round numbers.
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
    const double least = (max - min) / 8, power = std::pow(10, std::floor(std::log10(least)));
    const double spacing = power * (least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
    std::vector<double> found;
    for (double k = std::ceil(min / spacing); k * spacing <= max; ++k) found.push_back(k * spacing);
    return found;
  }
};

/// False for NaN, infinity and values so large that ranges become infinite: results of others may hold them.
bool can_be_drawn(double value) { return std::abs(value) < 1e300; }

bool can_be_drawn(const std::pair<double, double>& point) {
  return can_be_drawn(point.first) && can_be_drawn(point.second);
}

/// The range of one coordinate over `shown` and all points, with a margin.
Axis axis_of(const Chart& chart, std::vector<double> shown, double std::pair<double, double>::*coordinate,
             double length, bool logarithmic) {
  for (const Series& series : chart.series)
    for (const auto& point : series.points)
      if (can_be_drawn(point)) shown.push_back(point.*coordinate);
  if (shown.empty()) shown = {1};
  const auto [least, most] = std::minmax_element(shown.begin(), shown.end());
  constexpr double kAir = 0.05;  // margin at both ends, share of the axis
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
  Drawing(const Chart& chart, const CanvasFactory& canvases)
      : chart_(chart),
        canvas_(canvases(kWidth, kHeight)),
        right_(kSign + widest_name() + kSign / 2),
        x_(axis_of(chart, chart.x_ticks, &std::pair<double, double>::first, kWidth - kLeft - right_,
                   chart.log_x)),
        y_(axis_of(chart, marks_of(chart), &std::pair<double, double>::second, kHeight - kTop - kBottom,
                   chart.log_y)) {}

  void write(const std::filesystem::path& path) {
    draw_x_axis();
    draw_y_axis();
    for (std::size_t k = 0; k < chart_.series.size(); ++k) draw_series(k);
    text(chart_.title, {kLeft, 34}, kLargeFont);
    canvas_->write(path);
  }

 private:
  double widest_name() const {
    double widest = 0;
    for (const Series& series : chart_.series)
      widest = std::max(widest, canvas_->width_of(series.name, kFont));
    return std::min(widest, kWidth / 3.0);
  }

  Canvas::Point place(double x, double y) const { return {kLeft + x_.at(x), kHeight - kBottom - y_.at(y)}; }

  void text(const std::string& words, Canvas::Point at, double size = kFont,
            Canvas::Align align = Canvas::Align::left) {
    canvas_->text(words, at, size, kInk, align);
  }
  void line(Canvas::Point a, Canvas::Point b, Colour colour, double width) {
    const Canvas::Point ends[] = {a, b};
    canvas_->polyline(ends, colour, width);
  }

  /// Draws the x axis without the labels that would overlap the previous one.
  void draw_x_axis() {
    double free_from = 0;
    for (const double tick : chart_.x_ticks) {
      const Canvas::Point foot = place(tick, y_.min);
      line(foot, {foot.x, kTop}, kGridLine, 1);
      const std::string label = short_number(tick);
      const double width = canvas_->width_of(label, kFont);
      if (foot.x - width / 2 < free_from) continue;
      text(label, {foot.x, foot.y + 20}, kFont, Canvas::Align::centre);
      free_from = foot.x + width / 2 + 6;
    }
    text(chart_.x_label, {kLeft + x_.length / 2, kHeight - 20}, kLargeFont, Canvas::Align::centre);
  }

  void draw_y_axis() {
    for (const double value : y_.ticks()) {
      const Canvas::Point start = place(x_.min, value);
      line(start, {start.x + x_.length, start.y}, value == chart_.y_mark ? kInk : kGridLine, 1);
      text(short_number(value), {start.x - 8, start.y + 5}, kFont, Canvas::Align::right);
    }
    text(chart_.y_label, {8, kTop - 12});
  }

  void draw_series(std::size_t k) {
    const Colour colour = series_colour(k);
    const Series& series = chart_.series[k];
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      if (!can_be_drawn(series.points[i])) continue;
      const Canvas::Point here = place(series.points[i].first, series.points[i].second);
      if (series.line && i > 0 && can_be_drawn(series.points[i - 1]))
        line(place(series.points[i - 1].first, series.points[i - 1].second), here, colour, 2);
      canvas_->disc(here, 4, colour);
    }
    const double y = kTop + 12 + 22.0 * static_cast<double>(k), x = kWidth - right_ + 16;
    line({x, y}, {x + 24, y}, colour, 3);
    text(series.name, {x + 32, y + 5});
  }

  const Chart& chart_;
  std::unique_ptr<Canvas> canvas_;
  double right_;  ///< width of the legend beside the axes
  Axis x_, y_;
};

}  // namespace

void write_chart(const std::filesystem::path& path, const Chart& chart, const CanvasFactory& canvases) {
  Drawing(chart, canvases).write(path);
}

}  // namespace dic::draw
