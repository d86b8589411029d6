#include "bench/chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/image_io.hpp>
#include <opencv2/imgproc.hpp>

namespace dic::bench {
namespace {

constexpr int kWidth = 1000, kHeight = 620;  // px
constexpr int kLeft = 80, kTop = 60, kRight = 290, kBottom = 70;
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

Axis y_axis(const Chart& chart) {
  double least = 1, most = 1;  // a ratio of 1 is always shown
  for (const Series& series : chart.series)
    for (const auto& [x, y] : series.points) least = std::min(least, y), most = std::max(most, y);
  constexpr double kAir = 1.25;
  return {least / kAir, most * kAir, kHeight - kTop - kBottom};
}

std::vector<double> x_values(const Chart& chart) {
  std::vector<double> values;
  for (const Series& series : chart.series)
    for (const auto& [x, y] : series.points) values.push_back(x);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart)
      : chart_(chart),
        canvas_(kHeight * kOversampling, kWidth * kOversampling, CV_8UC3, kPaper),
        sizes_(x_values(chart)),
        x_{sizes_.front() / 1.1, sizes_.back() * 1.1, kWidth - kLeft - kRight},
        y_(y_axis(chart)) {}

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

  /// A mark at every size that was measured; labels that would touch the one before are left out.
  void draw_x_axis() {
    double free_from = 0;
    for (const double size : sizes_) {
      const cv::Point2d foot = place(size, y_.min);
      line(foot, {foot.x, kTop}, kGridLine, 1);
      const std::string label = short_number(size);
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
        line(start, {start.x + x_.length, start.y}, value == 1 ? kInk : kGridLine, 1);
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
      if (i > 0) line(place(series.points[i - 1].first, series.points[i - 1].second), here, colour, 2);
      cv::circle(canvas_, px(here), 4 * kOversampling, colour, cv::FILLED, cv::LINE_AA);
    }
    const double y = kTop + 12 + 22.0 * static_cast<double>(k), x = kWidth - kRight + 16;
    line({x, y}, {x + 24, y}, colour, 3);
    text(series.name, {x + 32, y + 5}, 0.45);
  }

  const Chart& chart_;
  cv::Mat canvas_;
  std::vector<double> sizes_;
  Axis x_, y_;
};

}  // namespace

void write_chart(const std::filesystem::path& path, const Chart& chart) {
  const cv::Mat picture = Drawing(chart).draw();
  write_image(path, RgbView{picture.data, picture.cols, picture.rows});
}

}  // namespace dic::bench
