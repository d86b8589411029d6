#include "draw/figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <numbers>
#include <opencv2/imgproc.hpp>

#include "draw/contour_lines.hpp"
#include "draw/legend.hpp"
#include "draw/palette.hpp"
#include "draw/small_grey.hpp"
#include "draw/ticks.hpp"

namespace dic::draw {
namespace {

constexpr int kSmallestSide = 480;  // longest side below which images for a screen are enlarged, px

// --- sizes ---

/// The places of the parts of a figure, units of the canvas.
struct Layout {
  double width = 0, height = 0;
  cv::Rect2d image;
  cv::Rect2d signs;  ///< room for the scale bar and the sign of the arrows: over the image, or below it
  cv::Rect2d legend;
  bool legend_is_below = false;
};

/// The factor that enlarges or reduces an image to a size for a screen.
double screen_zoom(Size image) {
  const int longest = std::max(image.width, image.height);
  if (longest > kScreenSide) return static_cast<double>(kScreenSide) / longest;
  return longest < kSmallestSide ? std::ceil(static_cast<double>(kSmallestSide) / longest) : 1;
}

Layout lay_out(Size image, const FigureOptions& options) {
  const double font = options.font, margin = 0.6 * font;
  Layout layout;
  layout.legend_is_below = image.height < 0.35 * image.width;
  const double beside = layout.legend_is_below ? 0 : font + kLegendWidth * font;
  double zoom = screen_zoom(image);
  if (options.width > 0) {
    constexpr double kTallest = 1.4;  // largest height of the image, in widths of the figure
    zoom = std::min((options.width - 2 * margin - beside) / image.width,
                    kTallest * options.width / image.height);
    if (!(zoom * image.width > font))
      throw UsageError(
          "The figure is too narrow for its font: give a larger --width or a smaller --font-size.");
  }
  const double heading = options.heading.empty() ? 0 : 1.8 * font;
  layout.image = {margin, margin + heading, std::max(1.0, image.width * zoom),
                  std::max(1.0, image.height * zoom)};
  const double drawn =
      layout.legend_is_below ? layout.image.height : std::max(layout.image.height, kLeastLegend * font);
  layout.signs = layout.image;
  if (layout.legend_is_below) {
    constexpr double kLowImage = 7;  // signs would cover most of an image below this height, in font sizes
    if ((options.scale_bar || options.vectors) && layout.image.height < kLowImage * font)
      layout.signs = {margin, layout.image.br().y, layout.image.width, 2.6 * font};
    layout.legend = {margin, layout.signs.br().y + 0.6 * font, layout.image.width, kLegendHeight * font};
  } else {
    layout.image.y += (drawn - layout.image.height) / 2;
    layout.signs = layout.image;
    layout.legend = {layout.image.br().x + font, margin + heading, kLegendWidth * font, drawn};
  }
  layout.width = std::max(layout.image.br().x, layout.legend.br().x) + margin;
  layout.height = std::max(margin + heading + drawn, layout.legend.br().y) + margin;
  return layout;
}

// --- the image underneath ---

/// The image as 8-bit grey; an 8-bit image is not copied.
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
  RangeFinder finder;
  finder.add(sample);
  const ValueRange range = finder.range().value_or(ValueRange{0, 1});
  cv::Mat grey;
  values.convertTo(grey, CV_8U, 255 / (range.max - range.min), -255 * range.min / (range.max - range.min));
  return grey;
}

cv::Mat resized(const cv::Mat& grey, cv::Size size, int enlarging) {
  if (grey.size() == size) return grey;
  cv::Mat out;
  cv::resize(grey, out, size, 0, 0, size.width < grey.cols ? cv::INTER_AREA : enlarging);
  return out;
}

/// The image as 8-bit grey in another size; always a copy. An empty image becomes white.
cv::Mat picture_of(ImageView image, cv::Size size) {
  if (image.empty()) return {size, CV_8U, cv::Scalar(255)};
  const cv::Mat grey = as_grey(image);
  const bool whole_factor = size.width % image.width == 0;
  return grey.size() == size ? grey.clone()
                             : resized(grey, size, whole_factor ? cv::INTER_NEAREST : cv::INTER_LINEAR);
}

// --- drawings over the image ---

/// Draws over the image, in px of the image.
class Overlay {
 public:
  Overlay(Canvas& canvas, const Layout& layout, double units_per_px, const FigureOptions& options)
      : canvas_(canvas),
        box_(layout.image),
        signs_(layout.signs),
        zoom_(units_per_px),
        options_(options),
        font_(options.font) {}

  void outlines(const MovedGrid& grid) {
    for (const auto& line : grid.outlines()) {
      std::vector<Canvas::Point> points;
      for (const cv::Point2d& p : line) points.push_back(inside(place(p)));
      canvas_.polyline(points, kInk, 0.1 * font_);
    }
  }

  void contours(const MovedGrid& grid, std::span<const float> values, std::span<const double> levels) {
    for (const double level : levels)
      for (const auto& [a, b] : contour_lines(grid, values, level)) {
        const Canvas::Point ends[] = {place(a), place(b)};
        canvas_.polyline(ends, kInk, 0.06 * font_);
      }
  }

  void scale_bar() {
    const double unit = options_.mm_per_px > 0 ? options_.mm_per_px : 1;
    const double length = round_below(0.25 * box_.width / zoom_ * unit);
    const double drawn = length / unit * zoom_;
    const std::string label = length_label(length);
    const double width = std::max(drawn, canvas_.width_of(label, font_)) + font_;
    const cv::Rect2d sign(signs_.x + 0.5 * font_, signs_.br().y - 2.5 * font_, width, 2 * font_);
    paper(sign);
    scale_sign_end_ = sign.br().x;
    const double middle = sign.x + width / 2, y = sign.br().y - 0.45 * font_;
    const Canvas::Point ends[] = {{middle - drawn / 2, y}, {middle + drawn / 2, y}};
    canvas_.polyline(ends, kInk, 0.25 * font_);
    canvas_.text(label, {middle, sign.y + 1.05 * font_}, font_, kInk, Canvas::Align::centre);
  }

  /// Draws about twenty arrows along the longer side.
  void vectors(const MovedGrid& grid) {
    const Grid& nodes = grid.grid();
    constexpr double kArrows = 20;
    const double exact_stride = std::max(nodes.nx, nodes.ny) / kArrows;
    const int stride = std::max(1, static_cast<int>(std::lround(exact_stride)));
    const auto first = [&](int count) { return (count - 1) % stride / 2; };
    std::vector<std::pair<cv::Point2d, cv::Point2d>> arrows;  // position and displacement, px
    std::vector<double> lengths;
    for (int j = first(grid.ny()); j < grid.ny(); j += stride)
      for (int i = first(grid.nx()); i < grid.nx(); i += stride) {
        if (!grid.is_measured(i, j)) continue;
        const cv::Point2d here = grid.position(i, j), moved = here - cv::Point2d(nodes.x(i), nodes.y(j));
        arrows.emplace_back(here, moved);
        lengths.push_back(cv::norm(moved));
      }
    if (lengths.empty()) return;
    const auto long_one =
        lengths.begin() + static_cast<std::ptrdiff_t>(0.95 * static_cast<double>(lengths.size() - 1));
    std::nth_element(lengths.begin(), long_one, lengths.end());
    if (!(*long_one > 0)) return;
    long_displacement_ = *long_one;
    enlarged_ = 0.95 * stride * nodes.step / long_displacement_;
    for (const auto& [here, moved] : arrows) {
      const Canvas::Point tip = place(here + moved * enlarged_);
      if (box_.contains(cv::Point2d(tip.x, tip.y))) arrow(place(here), tip);
    }
  }

  /// Draws an arrow of known length, beside the scale bar or above it.
  void arrow_sign() {
    if (!(long_displacement_ > 0)) return;
    const double unit = options_.mm_per_px > 0 ? options_.mm_per_px : 1;
    const double length = round_below(long_displacement_ * unit), drawn = length / unit * enlarged_ * zoom_;
    const std::string label = length_label(length);
    const double width = drawn + canvas_.width_of(label, font_) + 1.4 * font_;
    const double left = std::max(signs_.br().x - 0.5 * font_ - width, signs_.x);
    const double above = left < scale_sign_end_ + 0.3 * font_ ? 2.3 * font_ : 0;
    const cv::Rect2d sign(left, signs_.br().y - 2 * font_ - above, width, 1.5 * font_);
    paper(sign);
    const double y = sign.y + sign.height / 2;
    arrow({sign.x + 0.5 * font_, y}, {sign.x + 0.5 * font_ + drawn, y});
    canvas_.text(label, {sign.br().x - 0.4 * font_, y + 0.35 * font_}, font_, kInk, Canvas::Align::right);
  }

 private:
  /// The nearest point of the image.
  Canvas::Point inside(Canvas::Point p) const {
    return {std::clamp(p.x, box_.x, box_.br().x), std::clamp(p.y, box_.y, box_.br().y)};
  }
  Canvas::Point place(cv::Point2d p) const {
    return {box_.x + (p.x + 0.5) * zoom_, box_.y + (p.y + 0.5) * zoom_};
  }

  std::string length_label(double length) const {
    return short_number(length) + (options_.mm_per_px > 0 ? " mm" : " px");
  }

  void paper(const cv::Rect2d& r) {
    const Canvas::Point corners[] = {{r.x, r.y}, {r.br().x, r.y}, {r.br().x, r.br().y}, {r.x, r.br().y}};
    canvas_.polygon(corners, kPaper);
  }

  void arrow(Canvas::Point from, Canvas::Point to) {
    const double dx = to.x - from.x, dy = to.y - from.y, length = std::hypot(dx, dy);
    if (!(length > 0)) return;
    const double head = std::min(0.45 * font_, 0.5 * length), x = dx / length, y = dy / length;
    const Canvas::Point neck{to.x - x * head, to.y - y * head}, shaft[] = {from, neck};
    canvas_.polyline(shaft, kInk, 0.08 * font_);
    const Canvas::Point tip[] = {to,
                                 {neck.x - y * head * 0.4, neck.y + x * head * 0.4},
                                 {neck.x + y * head * 0.4, neck.y - x * head * 0.4}};
    canvas_.polygon(tip, kInk);
  }

  Canvas& canvas_;
  const cv::Rect2d box_, signs_;
  const double zoom_;
  const FigureOptions& options_;
  const double font_;
  double scale_sign_end_ = 0;
  double long_displacement_ = 0;  // 95th percentile of the arrows, px
  double enlarged_ = 1;           // factor of all arrows
};

void check(const MovedGrid& grid, std::span<const float> values, const FigureOptions& options) {
  if (std::ssize(values) != grid.grid().nodes())
    throw UsageError("A picture of a field needs one value per node of the grid.");
  if (options.range && !(options.range->min < options.range->max && std::isfinite(options.range->min) &&
                         std::isfinite(options.range->max)))
    throw UsageError("The colour range of a picture must be from a smaller to a larger value.");
}

/// Draws the heading, in a smaller font if it would be wider than the figure.
void draw_heading(Canvas& canvas, const Layout& layout, const FigureOptions& options) {
  if (options.heading.empty()) return;
  const double room = layout.width - 2 * layout.image.x;
  const double fit = std::min(1.0, room / std::max(1e-9, canvas.width_of(options.heading, options.font)));
  canvas.text(options.heading, {layout.image.x, 1.5 * options.font}, options.font * fit, kInk,
              Canvas::Align::left);
}

cv::Size pixels(const cv::Rect2d& box, double resolution) {
  return {std::max(1, cvRound(box.width * resolution)), std::max(1, cvRound(box.height * resolution))};
}

}  // namespace

Image small_grey(ImageView image, int longest) {
  const double zoom = std::min(1.0, static_cast<double>(longest) / std::max(image.width, image.height));
  const cv::Size size(std::max(1, cvRound(image.width * zoom)), std::max(1, cvRound(image.height * zoom)));
  const cv::Mat grey = resized(as_grey(image), size, cv::INTER_AREA);
  Image small({size.width, size.height}, ScalarType::u8);
  for (int y = 0; y < size.height; ++y) std::copy_n(grey.ptr(y), size.width, small.row<std::uint8_t>(y));
  return small;
}

FrameDrawing::FrameDrawing(ImageView image, Size size, const MovedGrid& grid, const CanvasFactory& canvases,
                           const FigureOptions& options)
    : grid_(grid),
      canvases_(canvases),
      units_per_px_(lay_out(size, options).image.width / size.width),
      resolution_(canvases(1, 1)->resolution()),
      picture_(picture_of(image, pixels(lay_out(size, options).image, resolution_))),
      cells_(grid, units_per_px_ * resolution_, picture_.size()),
      size_(size) {}

void FrameDrawing::write(const std::filesystem::path& path, std::span<const float> values,
                         const FigureOptions& options) const {
  check(grid_, values, options);
  RangeFinder finder;
  if (!options.range || !options.extremes) finder.add(values);
  const bool empty = std::ranges::none_of(values, [](float value) { return std::isfinite(value); });
  const ValueRange range = options.range ? *options.range : finder.range().value_or(ValueRange{0, 1});
  const ColourScale scale(range, options.colour_map);
  const Layout layout = lay_out(size_, options);

  const std::unique_ptr<Canvas> canvas = canvases_(layout.width, layout.height);
  const CellPainter painter(cells_, values, scale, options.smooth, options.opacity);
  canvas->image({{picture_.cols, picture_.rows},
                 [&](int y, std::span<std::uint8_t> rgb) { painter.paint(y, picture_.ptr(y), rgb.data()); }},
                {layout.image.x, layout.image.y});
  draw_heading(*canvas, layout, options);
  const Legend legend(*canvas, scale, layout.legend, layout.legend_is_below, options);
  legend.draw(empty ? std::nullopt : options.extremes ? options.extremes : finder.extremes());

  Overlay overlay(*canvas, layout, units_per_px_, options);
  if (options.outline) overlay.outlines(grid_);
  if (options.contours && !empty) overlay.contours(grid_, values, legend.ticks());
  if (options.vectors) overlay.vectors(grid_);
  if (options.scale_bar) overlay.scale_bar();
  overlay.arrow_sign();
  canvas->write(path);
}

}  // namespace dic::draw

void dic::write_field_picture(const std::filesystem::path& path, ImageView current, const Field& field,
                              std::span<const float> values, const FigureOptions& options,
                              const CanvasFactory& canvases) {
  if (current.empty()) throw UsageError("A picture of a field needs the image of its frame.");
  const draw::MovedGrid grid(field);
  const draw::FrameDrawing drawing(current, {current.width, current.height}, grid, canvases, options);
  drawing.write(path, values, options);
}
