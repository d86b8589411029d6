#include "bench/chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/image_io.hpp>
#include <opencv2/imgproc.hpp>

namespace dic::bench {
namespace {

constexpr int kWidth = 1040, kHeight = 620;  // px
constexpr int kLeft = 80, kTop = 60, kRight = 330, kBottom = 70;
constexpr int kOversampling = 3;  // reduced, OpenCV's stroke font gets smooth edges
const cv::Scalar kPaper(255, 255, 255), kInk(40, 40, 40), kGridLine(225, 225, 225);

// Of even lightness and told apart with every kind of colour vision (after Okabe and Ito); R, G, B.
const cv::Scalar kColours[] = {{0, 114, 178},  {213, 94, 0},  {0, 158, 115},   {204, 121, 167},
                               {86, 180, 233}, {230, 159, 0}, {120, 120, 120}, {0, 0, 0}};

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

/// A logarithmic axis from `min` to `max` along `length` px.
struct Axis {
  double min, max, length;

  double at(double value) const { return length * std::log(value / min) / std::log(max / min); }
};

/// The range of one coordinate over `shown` and all points, with some air around it.
Axis axis_of(const Chart& chart, std::vector<double> shown, double std::pair<double, double>::*coordinate,
             double length) {
  for (const Series& series : chart.series)
    for (const auto& point : series.points) shown.push_back(point.*coordinate);
  const auto [least, most] = std::minmax_element(shown.begin(), shown.end());
  constexpr double kAir = 1.15;
  return {*least / kAir, *most * kAir, length};
}

std::vector<double> marks_of(const Chart& chart) {
  return chart.y_mark > 0 ? std::vector<double>{chart.y_mark} : std::vector<double>{};
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart)
      : chart_(chart),
        canvas_(kHeight * kOversampling, kWidth * kOversampling, CV_8UC3, kPaper),
        x_(axis_of(chart, chart.x_ticks, &std::pair<double, double>::first, kWidth - kLeft - kRight)),
        y_(axis_of(chart, marks_of(chart), &std::pair<double, double>::second, kHeight - kTop - kBottom)) {}

  cv::Mat draw() {
    draw_x_axis();
    draw_y_axis();
    for (std::size_t k = 0; k < chart_.series.size(); ++k) draw_series(k);
    text(chart_.title, {kLeft, 34}, 0.55);
    cv::Mat reduced;
    cv::resize(canvas_, reduced, {kWidth, kHeight}, 0, 0, cv::INTER_AREA);
    return reduced;
  }

 private:
  cv::Point2d place(double x, double y) const { return {kLeft + x_.at(x), kHeight - kBottom - y_.at(y)}; }
  static cv::Point px(cv::Point2d p) { return {cvRound(p.x * kOversampling), cvRound(p.y * kOversampling)}; }

  void line(cv::Point2d a, cv::Point2d b, const cv::Scalar& colour, double width) {
    cv::line(canvas_, px(a), px(b), colour, cvRound(width * kOversampling), cv::LINE_AA);
  }
  void text(const std::string& words, cv::Point2d at, double size) {
    cv::putText(canvas_, words, px(at), cv::FONT_HERSHEY_SIMPLEX, size * kOversampling, kInk, kOversampling,
                cv::LINE_AA);
  }
  static double width_of(const std::string& words, double size) {
    int baseline = 0;
    return cv::getTextSize(words, cv::FONT_HERSHEY_SIMPLEX, size, 1, &baseline).width;
  }

  /// Labels that would touch the one before are left out.
  void draw_x_axis() {
    double free_from = 0;
    for (const double tick : chart_.x_ticks) {
      const cv::Point2d foot = place(tick, y_.min);
      line(foot, {foot.x, kTop}, kGridLine, 1);
      const std::string label = short_number(tick);
      const double width = width_of(label, 0.45);
      if (foot.x - width / 2 < free_from) continue;
      text(label, {foot.x - width / 2, foot.y + 20}, 0.45);
      free_from = foot.x + width / 2 + 6;
    }
    text(chart_.x_label, {kLeft + (x_.length - width_of(chart_.x_label, 0.5)) / 2, kHeight - 20}, 0.5);
  }

  void draw_y_axis() {
    for (double power = std::pow(10, std::floor(std::log10(y_.min))); power <= y_.max; power *= 10)
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * power;
        if (value < y_.min || value > y_.max) continue;
        const cv::Point2d start = place(x_.min, value);
        line(start, {start.x + x_.length, start.y}, value == chart_.y_mark ? kInk : kGridLine, 1);
        const std::string label = short_number(value);
        text(label, {start.x - 8 - width_of(label, 0.45), start.y + 5}, 0.45);
      }
    text(chart_.y_label, {8, kTop - 8}, 0.45);
  }

  void draw_series(std::size_t k) {
    const cv::Scalar colour = kColours[k % std::size(kColours)];
    const Series& series = chart_.series[k];
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const cv::Point2d here = place(series.points[i].first, series.points[i].second);
      if (series.line && i > 0)
        line(place(series.points[i - 1].first, series.points[i - 1].second), here, colour, 2);
      cv::circle(canvas_, px(here), 4 * kOversampling, colour, cv::FILLED, cv::LINE_AA);
    }
    const double y = kTop + 12 + 22.0 * static_cast<double>(k), x = kWidth - kRight + 16;
    line({x, y}, {x + 24, y}, colour, 3);
    text(series.name, {x + 32, y + 5}, 0.45);
  }

  const Chart& chart_;
  cv::Mat canvas_;
  Axis x_, y_;
};

}  // namespace

void write_chart(const std::filesystem::path& path, const Chart& chart) {
  const cv::Mat picture = Drawing(chart).draw();
  write_image(path, RgbView{picture.data, picture.cols, picture.rows});
}

}  // namespace dic::bench
