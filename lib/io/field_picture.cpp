#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/io.hpp>
#include <opencv2/imgproc.hpp>

#include "io/colour_map.hpp"

namespace dic {
namespace {

// Long side of the image inside the drawing, px: small frames are enlarged, huge ones reduced.
constexpr int kSmallest = 640, kLargest = 1400;
constexpr int kSmallestPanel = 360;  // height, px
constexpr double kOpacity = 0.85;    // of the colours over the image
constexpr int kSubpixelBits = 4;     // of cv's fixed-point vertices
const cv::Scalar kBackground(255, 255, 255), kInk(40, 40, 40);

// --- values to colours ---

/// The colour range and how a value becomes a colour.
struct ColourScale {
  double min = 0, max = 0;
  bool diverging = false;  ///< the middle of the map is zero

  ColourScale(double low, double high) : min(low), max(high) {
    const double smaller = std::min(-min, max), larger = std::max(-min, max);
    diverging = smaller > 0.15 * larger;  // else most of one half of the map would not be used
  }

  cv::Vec3b colour(double value) const {
    const double reach = std::max(-min, max);
    const double t = diverging ? 0.5 + 0.5 * value / reach : (value - min) / (max - min);
    const auto& map = diverging ? diverging_map() : sequential_map();
    const auto& rgb = map[static_cast<std::size_t>(std::lround(255 * std::clamp(t, 0.0, 1.0)))];
    return {rgb[0], rgb[1], rgb[2]};
  }
};

/// The values at the fractions `low` and `high` of the sorted list. Reorders it.
std::pair<double, double> percentiles(std::vector<float>& values, double low, double high) {
  const auto at = [&](double fraction) {
    const auto nth = values.begin() + std::lround(fraction * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), nth, values.end());
    return static_cast<double>(*nth);
  };
  return {at(low), at(high)};
}

ColourScale choose_scale(std::span<const float> values, const FieldPictureOptions& options) {
  if (options.range) return {options.range->min, options.range->max};
  std::vector<float> present;
  std::copy_if(values.begin(), values.end(), std::back_inserter(present),
               [](float v) { return std::isfinite(v); });
  if (present.empty()) return {0, 1};
  auto [low, high] = percentiles(present, 0.02, 0.98);
  // A constant field still needs a range: around its value, wide enough for the labels to differ.
  const double least = std::max(2e-6, 1e-3 * std::max(std::abs(low), std::abs(high)));
  if (high - low < least) low -= least / 2, high += least / 2;
  return {low, high};
}

// --- the image underneath ---

/// 8-bit grey. Deeper images are stretched between their 0.5th and 99.5th percentile. 8 bits are not
/// copied.
cv::Mat as_grey(ImageView image) {
  if (image.type == ScalarType::u8)
    return {image.height, image.width, CV_8U, const_cast<std::uint8_t*>(image.row<std::uint8_t>(0)),
            static_cast<std::size_t>(image.row_bytes)};
  cv::Mat values(image.height, image.width, CV_32F);
  visit_scalar(image.type, [&]<typename T>(T) {
    for (int y = 0; y < image.height; ++y)
      std::transform(image.row<T>(y), image.row<T>(y) + image.width, values.ptr<float>(y),
                     [](T value) { return static_cast<float>(value); });
  });
  std::vector<float> sample;
  const std::size_t stride = 1 + values.total() / 100000;
  for (std::size_t k = 0; k < values.total(); k += stride) sample.push_back(values.ptr<float>()[k]);
  auto [low, high] = percentiles(sample, 0.005, 0.995);
  if (!(high > low)) high = low + 1;
  cv::Mat grey;
  values.convertTo(grey, CV_8U, 255 / (high - low), -255 * low / (high - low));
  return grey;
}

cv::Mat resized(const cv::Mat& grey, cv::Size size) {
  cv::Mat out;
  cv::resize(grey, out, size, 0, 0, size.width < grey.cols ? cv::INTER_AREA : cv::INTER_NEAREST);
  return out;
}

double choose_zoom(int width, int height) {
  const int longest = std::max(width, height);
  if (longest > kLargest) return static_cast<double>(kLargest) / longest;
  return longest < kSmallest ? std::ceil(static_cast<double>(kSmallest) / longest) : 1;
}

// --- the field on top ---

/// The grid as a mesh in the current image: every point is a cell that reaches half-way to its neighbours.
class Cells {
 public:
  explicit Cells(const Field& field)
      : grid_(field.grid()),
        u_(field.image_u.empty() ? field.u : field.image_u),
        v_(field.image_v.empty() ? field.v : field.image_v) {}

  bool drawn(int i, int j) const {
    if (i < 0 || j < 0 || i >= grid_.nx || j >= grid_.ny) return false;
    const std::size_t k = node(i, j);
    return grid_.inside[k] && std::isfinite(u_[k]) && std::isfinite(v_[k]);
  }

  /// Current position of the corner between the nodes (i-1, j-1) and (i, j): the mean of what its drawn
  /// neighbours say, so that cells of one piece share their corners.
  cv::Point2d corner(int i, int j) const {
    cv::Point2d sum(0, 0);
    int n = 0;
    for (int b = j - 1; b <= j; ++b)
      for (int a = i - 1; a <= i; ++a) {
        if (!drawn(a, b)) continue;
        const std::size_t k = node(a, b);
        sum += {grid_.x(a) + u_[k] + (i - a - 0.5) * grid_.step,
                grid_.y(b) + v_[k] + (j - b - 0.5) * grid_.step};
        ++n;
      }
    return sum / n;
  }

  std::size_t node(int i, int j) const { return static_cast<std::size_t>(j) * grid_.nx + i; }

 private:
  const Grid& grid_;
  const NodeValues<double>&u_, &v_;  ///< in the image
};

/// Paints the cells over what `canvas` shows, opaque.
void paint_cells(cv::Mat& canvas, double zoom, const Field& field, std::span<const float> values,
                 const ColourScale& scale) {
  const Grid& grid = field.grid();
  const Cells cells(field);
  const auto to_canvas = [&](cv::Point2d p) {  // pixel centres are integers in both images
    const double unit = 1 << kSubpixelBits;
    return cv::Point(cvRound(((p.x + 0.5) * zoom - 0.5) * unit), cvRound(((p.y + 0.5) * zoom - 0.5) * unit));
  };
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      if (!cells.drawn(i, j) || !std::isfinite(values[cells.node(i, j)])) continue;
      const cv::Point quad[] = {to_canvas(cells.corner(i, j)), to_canvas(cells.corner(i + 1, j)),
                                to_canvas(cells.corner(i + 1, j + 1)), to_canvas(cells.corner(i, j + 1))};
      const cv::Vec3b colour = scale.colour(values[cells.node(i, j)]);
      cv::fillConvexPoly(canvas, quad, 4, cv::Scalar(colour[0], colour[1], colour[2]), cv::LINE_8,
                         kSubpixelBits);
    }
}

/// Lets the grey image shine through what was painted over it.
void blend(cv::Mat& painted, const cv::Mat& grey) {
  cv::Mat rgb;
  for (int y = 0; y < grey.rows; ++y) {  // by rows: without a second image in memory
    cv::Mat row = painted.row(y);
    cv::cvtColor(grey.row(y), rgb, cv::COLOR_GRAY2RGB);
    cv::addWeighted(row, kOpacity, rgb, 1 - kOpacity, 0, row);
  }
}

// --- the panel with the colour bar ---

/// Tick values on round numbers, and how to print them: as multiples of 10^exponent.
struct Ticks {
  double step = 1;
  int decimals = 0;
  int exponent = 0;  // a multiple of 3; 0 where plain numbers are short

  Ticks(double min, double max, int at_most) {
    const double raw = (max - min) / at_most;
    const double power = std::pow(10, std::floor(std::log10(raw)));
    step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0})
      if (factor * power >= raw * (1 - 1e-9)) step = factor * power;
    const double largest = std::max(std::abs(min), std::abs(max));
    if (largest < 0.01 || largest >= 1e5)
      exponent = 3 * static_cast<int>(std::floor(std::log10(largest) / 3));
    decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step / std::pow(10, exponent)) + 1e-9)));
  }

  std::string label(double value, int more_decimals = 0) const {
    char text[32];
    const double shown = value / std::pow(10, exponent);
    std::snprintf(text, sizeof text, "%.*f", decimals + more_decimals, shown == 0 ? 0.0 : shown);
    return text;
  }
};

/// Draws text and bar at a multiple of the final size: reduced, OpenCV's stroke font gets smooth edges.
class Panel {
 public:
  Panel(int height, double text_scale)
      : size_(text_scale * kOversampling),
        canvas_(height * kOversampling, static_cast<int>(kWidth * size_), CV_8UC3, kBackground) {}

  void draw(const ColourScale& scale, const FieldPictureOptions& options, bool empty) {
    const Ticks ticks(scale.min, scale.max, std::clamp(static_cast<int>(canvas_.rows / (55 * size_)), 2, 10));
    text(options.title, 6, 26, 0.8, 2);
    text(unit_line(ticks, options.unit), 6, 48, 0.5, 1);
    if (empty) return text("no values", 6, 80, 0.5, 1);
    draw_bar(scale);
    draw_ticks(scale, ticks);
    text(ticks.label(scale.min, 1) + " .. " + ticks.label(scale.max, 1), 6, bottom() + 30, 0.42, 1);
  }

  cv::Mat reduced() const {
    cv::Mat small;
    cv::resize(canvas_, small, canvas_.size() / kOversampling, 0, 0, cv::INTER_AREA);
    return small;
  }

 private:
  static constexpr int kOversampling = 3;
  static constexpr double kWidth = 124, kTop = 66, kLeft = 6,
                          kRight = 32;  // of panel and bar, units of size_

  double bottom() const { return canvas_.rows / size_ - 44; }
  int px(double units) const { return cvRound(units * size_); }

  static std::string unit_line(const Ticks& ticks, const std::string& unit) {
    const std::string factor = ticks.exponent == 0 ? "" : "1e" + std::to_string(ticks.exponent);
    const std::string gap = factor.empty() || unit.empty() ? "" : " ";
    return factor.empty() && unit.empty() ? "" : "[" + factor + gap + unit + "]";
  }

  /// Smaller where the line would leave the panel.
  void text(const std::string& line, double x, double y, double scale, int weight) {
    constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
    const int thickness = std::max(1, cvRound(weight * size_ * 0.9));
    const int width = cv::getTextSize(line, kFont, scale * size_, thickness, nullptr).width;
    const double fit = std::min(1.0, static_cast<double>(canvas_.cols - px(x)) / std::max(1, width));
    cv::putText(canvas_, line, {px(x), px(y)}, kFont, scale * size_ * fit, kInk, thickness, cv::LINE_AA);
  }

  /// Row of the canvas where `value` lies on the bar.
  int row_of(const ColourScale& scale, double value) const {
    return px(bottom() - (value - scale.min) / (scale.max - scale.min) * (bottom() - kTop));
  }

  void draw_bar(const ColourScale& scale) {
    const int top = px(kTop), end = px(bottom());
    for (int row = top; row <= end; ++row) {
      const double value = scale.max - (scale.max - scale.min) * (row - top) / std::max(1, end - top);
      canvas_(cv::Range(row, row + 1), cv::Range(px(kLeft), px(kRight))).setTo(scale.colour(value));
    }
    cv::rectangle(canvas_, cv::Point(px(kLeft), top), cv::Point(px(kRight), end), kInk, std::max(1, px(0.8)));
  }

  void draw_ticks(const ColourScale& scale, const Ticks& ticks) {
    const double tolerance = 1e-9 * (scale.max - scale.min);
    for (double n = std::ceil((scale.min - tolerance) / ticks.step); n * ticks.step <= scale.max + tolerance;
         ++n) {
      const int row = row_of(scale, n * ticks.step);
      cv::line(canvas_, {px(kRight), row}, {px(kRight + 5), row}, kInk, std::max(1, px(0.8)));
      text(ticks.label(n * ticks.step), kRight + 9, row / size_ + 5, 0.45, 1);
    }
  }

  double size_;
  cv::Mat canvas_;
};

cv::Mat draw_panel(int height, const ColourScale& scale, std::span<const float> values,
                   const FieldPictureOptions& options) {
  Panel panel(height, std::clamp(height / 640.0, 0.9, 1.6));
  panel.draw(scale, options,
             std::none_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }));
  return panel.reduced();
}

}  // namespace

void write_field_picture(const std::filesystem::path& path, ImageView current, const Field& field,
                         std::span<const float> values, const FieldPictureOptions& options) {
  if (current.empty() || std::ssize(values) != field.grid().nodes())
    throw UsageError("A picture of a field needs an image and one value per node of the grid.");
  if (options.range && !(options.range->min < options.range->max))
    throw UsageError("The colour range of a picture must be from a smaller to a larger value.");
  const double zoom = choose_zoom(current.width, current.height);
  const cv::Size size(std::max(1, static_cast<int>(std::lround(current.width * zoom))),
                      std::max(1, static_cast<int>(std::lround(current.height * zoom))));
  const int height = std::max(size.height, kSmallestPanel), gap = 10;
  const ColourScale scale = choose_scale(values, options);
  const cv::Mat panel = draw_panel(height, scale, values, options);

  cv::Mat canvas(height + 2 * gap, size.width + panel.cols + 3 * gap, CV_8UC3, kBackground);
  panel.copyTo(canvas({size.width + 2 * gap, gap, panel.cols, panel.rows}));
  cv::Mat image = canvas({gap, gap + (height - size.height) / 2, size.width, size.height});
  const cv::Mat grey = resized(as_grey(current), size);
  cv::cvtColor(grey, image, cv::COLOR_GRAY2RGB);
  paint_cells(image, zoom, field, values, scale);
  blend(image, grey);
  write_image(path, RgbView{canvas.data, canvas.cols, canvas.rows});
}

}  // namespace dic
