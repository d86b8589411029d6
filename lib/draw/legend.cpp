#include "draw/legend.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/core.hpp>
#include <span>

#include "draw/palette.hpp"

namespace dic::draw {
namespace {

// Lengths in sizes of the font.
constexpr double kBar = 1.1;          // thickness of the bar
constexpr double kEnd = 0.8;          // length of a pointed end, which shows that values lie beyond
constexpr double kNumberSize = 0.92;  // size of numbers
constexpr double kLine = 0.06;        // width of lines

double numbers_that_fit(const cv::Rect2d& box, bool is_below, double font) {
  return is_below ? box.width / (5 * font) : box.height / (3 * font);
}

bool reaches_beyond(const std::optional<ValueRange>& extremes, const ValueRange& range, bool upwards) {
  if (!extremes) return false;
  const double least = 1e-6 * (range.max - range.min);
  return upwards ? extremes->max > range.max + least : extremes->min < range.min - least;
}

}  // namespace

Legend::Legend(Canvas& canvas, const ColourScale& scale, const cv::Rect2d& box, bool is_below,
               const FigureOptions& options)
    : canvas_(canvas),
      scale_(scale),
      box_(box),
      is_below_(is_below),
      options_(options),
      font_(options.font),
      ticks_(scale.range().min, scale.range().max,
             std::clamp(static_cast<int>(numbers_that_fit(box, is_below, options.font)), 2, 9)) {}

std::vector<double> Legend::ticks() const { return ticks_.values(scale_.range().min, scale_.range().max); }

void Legend::draw(std::optional<ValueRange> extremes) const {
  is_below_ ? draw_below(extremes) : draw_beside(extremes);
}

void Legend::draw_beside(std::optional<ValueRange> extremes) const {
  const Canvas::Point at{box_.x, box_.y + font_};
  title(&at, std::min(1.0, box_.width / title(nullptr)));  // a long unit is written smaller
  if (!extremes) return text("no values", {box_.x, box_.y + 2.6 * font_}, 1, Canvas::Align::left);
  text(extreme("max ", extremes->max), {box_.x, box_.y + 2.4 * font_}, kNumberSize, Canvas::Align::left);
  text(extreme("min ", extremes->min), {box_.x, box_.br().y - 0.2 * font_}, kNumberSize, Canvas::Align::left);
  const double top = box_.y + (2.9 + kEnd) * font_, bottom = box_.br().y - (1.4 + kEnd) * font_;
  const cv::Rect2d bar(box_.x, top, kBar * font_, bottom - top);
  draw_bar(bar, extremes);
  for (const double tick : ticks()) {
    const double y = bottom - fraction(tick) * bar.height;
    const Canvas::Point ends[] = {{bar.br().x, y}, {bar.br().x + 0.35 * font_, y}};
    canvas_.polyline(ends, kInk, kLine * font_);
    text(ticks_.label(tick), {bar.br().x + 0.6 * font_, y + 0.34 * font_}, kNumberSize, Canvas::Align::left);
  }
}

void Legend::draw_below(std::optional<ValueRange> extremes) const {
  const double last_line = box_.br().y - 0.3 * font_;
  const Canvas::Point at{box_.x + (box_.width - title(nullptr)) / 2, last_line};
  title(&at);
  if (!extremes) return text("no values", {box_.x, last_line}, 1, Canvas::Align::left);
  text(extreme("min ", extremes->min), {box_.x, last_line}, kNumberSize, Canvas::Align::left);
  text(extreme("max ", extremes->max), {box_.br().x, last_line}, kNumberSize, Canvas::Align::right);
  const cv::Rect2d bar(box_.x + kEnd * font_, box_.y, box_.width - 2 * kEnd * font_, kBar * font_);
  draw_bar(bar, extremes);
  for (const double tick : ticks()) {
    const double x = bar.x + fraction(tick) * bar.width;
    const Canvas::Point ends[] = {{x, bar.br().y}, {x, bar.br().y + 0.35 * font_}};
    canvas_.polyline(ends, kInk, kLine * font_);
    text(ticks_.label(tick), {x, bar.br().y + 1.25 * font_}, kNumberSize, Canvas::Align::centre);
  }
}

void Legend::draw_bar(const cv::Rect2d& bar, std::optional<ValueRange> extremes) const {
  const ValueRange range = scale_.range();
  const double resolution = canvas_.resolution();
  const Size size{std::max(1, cvRound(bar.width * resolution)),
                  std::max(1, cvRound(bar.height * resolution))};
  const auto colour = [&](int x, int y) {
    const double place = is_below_ ? (x + 0.5) / size.width : 1 - (y + 0.5) / size.height;
    return scale_.colour(range.min + (range.max - range.min) * place);
  };
  const auto write_row = [&](int y, std::span<std::uint8_t> rgb) {
    for (int x = 0; x < size.width; ++x) {
      const Colour c = colour(x, y);
      std::ranges::copy(std::array{c.r, c.g, c.b}, rgb.begin() + 3 * x);
    }
  };
  canvas_.image({size, write_row}, {bar.x, bar.y});
  const double end = kEnd * font_;
  const Canvas::Point a{bar.x, bar.y}, b{bar.br().x, bar.y}, c{bar.br().x, bar.br().y}, d{bar.x, bar.br().y};
  const Canvas::Point around[] = {a, b, c, d, a};
  canvas_.polyline(around, kInk, kLine * font_);
  const bool above = reaches_beyond(extremes, range, true), below = reaches_beyond(extremes, range, false);
  if (is_below_) {
    if (above) draw_end(b, {b.x + end, (b.y + c.y) / 2}, c, range.max);
    if (below) draw_end(a, {a.x - end, (a.y + d.y) / 2}, d, range.min);
  } else {
    if (above) draw_end(a, {(a.x + b.x) / 2, a.y - end}, b, range.max);
    if (below) draw_end(d, {(d.x + c.x) / 2, d.y + end}, c, range.min);
  }
}

void Legend::draw_end(Canvas::Point a, Canvas::Point tip, Canvas::Point b, double value) const {
  const Canvas::Point corners[] = {a, tip, b};
  canvas_.polygon(corners, scale_.colour(value));
  canvas_.polyline(corners, kInk, kLine * font_);
}

double Legend::fraction(double value) const {
  return (value - scale_.range().min) / (scale_.range().max - scale_.range().min);
}

std::string Legend::extreme(const char* name, double value) const { return name + ticks_.label(value, 1); }

/// Writes a text. size: relative to the font.
void Legend::text(const std::string& words, Canvas::Point at, double size, Canvas::Align align) const {
  canvas_.text(words, at, size * font_, kInk, align);
}

double Legend::title(const Canvas::Point* at, double size) const {
  constexpr double kSubscript = 0.72, kDrop = 0.22;  // relative to the font's size
  const std::size_t mark = options_.symbol.find('_');
  const std::string subscript = mark == std::string::npos ? "" : options_.symbol.substr(mark + 1);
  const std::string factor = ticks_.factor(), gap = factor.empty() || options_.unit.empty() ? "" : " ";
  const std::string unit =
      factor.empty() && options_.unit.empty() ? "" : " [" + factor + gap + options_.unit + "]";
  double x = 0;
  const double font = size * font_;
  const auto add = [&](const std::string& words, double relative, double drop) {
    if (words.empty()) return;
    if (at) canvas_.text(words, {at->x + x, at->y + drop * font}, relative * font, kInk, Canvas::Align::left);
    x += canvas_.width_of(words, relative * font);
  };
  add(options_.symbol.substr(0, mark), 1, 0);
  add(subscript, kSubscript, kDrop);
  if (!unit.empty()) x += 0.3 * font, add(unit.substr(1), 1, 0);
  return x;
}

}  // namespace dic::draw
