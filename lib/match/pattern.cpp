#include "match/pattern.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <limits>
#include <numbers>
#include <numeric>
#include <opencv2/imgproc.hpp>
#include <vector>

namespace dic::match {
namespace {

/// Tolerance for positions that rounding puts just outside the template, px.
constexpr double kSlack = 1e-6;

struct Range {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
};

Range counted_range(const Image& values, const Image& mask) {
  Range range;
  for (int y = 0; y < values.height(); ++y)
    for (int x = 0; x < values.width(); ++x) {
      if (!mask.row<std::uint8_t>(y)[x]) continue;
      range.min = std::min(range.min, values.row<double>(y)[x]);
      range.max = std::max(range.max, values.row<double>(y)[x]);
    }
  return range;
}

/// Calls function(x, y, value as double) for every pixel.
template <typename Function>
void for_each_pixel(ImageView image, Function&& function) {
  visit_scalar(image.type, [&]<typename T>(T) {
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x) function(x, y, static_cast<double>(image.row<T>(y)[x]));
  });
}

bool is_identity(double rotation_deg, double scale) {
  return scale == 1 && std::remainder(rotation_deg, 360.0) == 0;
}

/// The template as an image at a smaller scale would show it. A pixel of that image covers 1/scale px of the
/// template, so a Gaussian widens the pixel's box (variance 1/12) to the same variance; otherwise fine detail
/// would alias.
Image reduced_detail(const Image& values, double scale) {
  Image blurred = values;
  if (scale >= 1) return blurred;
  const double sigma = std::sqrt((1 / (scale * scale) - 1) / 12);
  cv::Mat pixels(values.height(), values.width(), CV_64F, blurred.row<double>(0));
  cv::GaussianBlur(pixels, pixels, {}, sigma, sigma, cv::BORDER_REFLECT_101);
  return blurred;
}

/// Rotates and scales directions from the template to the image.
struct Similarity {
  double cosine, sine;  ///< cosine and sine times the scale

  Similarity(double rotation_deg, double scale) {
    const double angle = rotation_deg * std::numbers::pi / 180;
    cosine = scale * std::cos(angle);
    sine = scale * std::sin(angle);
  }
  std::array<double, 2> forward(double x, double y) const {
    return {cosine * x - sine * y, sine * x + cosine * y};
  }
  std::array<double, 2> inverse(double x, double y) const {
    const double norm = cosine * cosine + sine * sine;
    return {(cosine * x + sine * y) / norm, (cosine * y - sine * x) / norm};
  }
};

/// The whole pixels first .. last in the interval of four values.
struct Span {
  double first, last;

  explicit Span(std::array<double, 4> values) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    first = std::ceil(*low - kSlack);
    last = std::floor(*high + kSlack);
  }
  double count() const { return last - first + 1; }
};

template <typename T>
double stretched_top() {
  // i32 uses the range of u16; a larger one would only make the sums less exact.
  return std::min<double>(std::numeric_limits<T>::max(), 65535);
}

/// Gain and offset that bring the pattern into an integer type T.
template <typename T>
std::array<double, 2> gain_and_offset(const Pattern& pattern, Criterion method) {
  const Range range = counted_range(pattern.values, pattern.mask);
  bool fits = range.min >= std::numeric_limits<T>::min() && range.max <= std::numeric_limits<T>::max();
  for_each_pixel(pattern.values, [&](int, int, double value) { fits = fits && value == std::round(value); });
  if (fits || method == Criterion::ssd) return {1, 0};
  const double top = stretched_top<T>();
  if (method == Criterion::ncc) return {top / std::max(std::abs(range.min), std::abs(range.max)), 0};
  const double gain = range.max > range.min ? top / (range.max - range.min) : 1;
  return {gain, -gain * range.min};
}

}  // namespace

Template make_template(ImageView values, ImageView mask) {
  for (const ImageView* view : {&values, &mask})
    ImageView::of(view->data, view->type, view->size(), view->row_bytes, view->bit_depth);
  if (values.empty()) throw UsageError("A template has no pixels; give an image of at least 1 by 1 px.");
  if (!mask.empty() && (mask.width != values.width || mask.height != values.height))
    throw UsageError("The mask has " + std::to_string(mask.width) + " x " + std::to_string(mask.height) +
                     " px but its template " + std::to_string(values.width) + " x " +
                     std::to_string(values.height) + " px; they must have the same size.");
  Template made{Image(values.size(), ScalarType::f64),
                Image(values.size(), ScalarType::u8),
                values.type,
                values.bit_depth,
                0,
                0};
  for_each_pixel(values, [&](int x, int y, double value) {
    if (!std::isfinite(value)) throw UsageError("A template holds NaN or infinity; take a patch without.");
    made.values.row<double>(y)[x] = value;
  });
  for_each_pixel(mask.empty() ? values : mask, [&](int x, int y, double value) {
    made.mask.row<std::uint8_t>(y)[x] = mask.empty() || value != 0;
  });
  const Range range = counted_range(made.values, made.mask);
  if (range.max < range.min)
    throw UsageError("The mask of a template is zero everywhere; pixels that count must be non-zero.");
  made.min = range.min;
  made.max = range.max;
  return made;
}

TemplateWarp::TemplateWarp(const Template& source, double scale, core::ThreadPool& pool)
    : source_(source), scale_(scale), pool_(pool), spline_(reduced_detail(source.values, scale), pool) {}

/// True if every pixel around the position is inside the mask, so that no masked pixel leaks in.
bool TemplateWarp::counts(double x, double y) const {
  const int right = source_.mask.width() - 1, bottom = source_.mask.height() - 1;
  if (x < -kSlack || y < -kSlack || x > right + kSlack || y > bottom + kSlack) return false;
  const auto row = [&](double v) { return source_.mask.row<std::uint8_t>(std::clamp<int>(v, 0, bottom)); };
  const auto column = [&](double v) { return std::clamp<int>(v, 0, right); };
  const int left = column(std::floor(x + kSlack)), next = column(std::ceil(x - kSlack));
  const auto *upper = row(std::floor(y + kSlack)), *lower = row(std::ceil(y - kSlack));
  return upper[left] && upper[next] && lower[left] && lower[next];
}

std::optional<Pattern> TemplateWarp::at(double rotation_deg, int max_width, int max_height) const {
  const double right = source_.values.width() - 1, bottom = source_.values.height() - 1;
  const Similarity warp(rotation_deg, scale_);
  const auto a = warp.forward(right, 0), b = warp.forward(0, bottom), c = warp.forward(right, bottom);
  const Span across({0, a[0], b[0], c[0]}), down({0, a[1], b[1], c[1]});
  if (across.count() > max_width || down.count() > max_height) return std::nullopt;

  const int width = static_cast<int>(across.count()), height = static_cast<int>(down.count());
  const int origin_x = static_cast<int>(across.first), origin_y = static_cast<int>(down.first);
  const auto [center_x, center_y] = warp.forward(right / 2, bottom / 2);
  // The unchanged template stays exact. The size guards against angles whose sine is not as exact.
  const bool identity = is_identity(rotation_deg, scale_) && width == source_.values.width() &&
                        height == source_.values.height();
  Pattern pattern{identity ? source_.values : Image({width, height}, ScalarType::f64),
                  Image({width, height}, ScalarType::u8),
                  origin_x,
                  origin_y,
                  center_x,
                  center_y};
  std::vector<std::int64_t> counted(height, 0);  // elements of each row
  core::for_each_row(pool_, height, [&](int j) {
    for (int i = 0; i < width; ++i) {
      const auto [x, y] = warp.inverse(origin_x + i, origin_y + j);
      if (!counts(x, y)) continue;
      ++counted[j];
      pattern.mask.row<std::uint8_t>(j)[i] = 1;
      if (!identity) pattern.values.row<double>(j)[i] = spline_.at(x, y);
    }
  });
  pattern.elements = std::accumulate(counted.begin(), counted.end(), std::int64_t{0});
  if (pattern.elements < 2) return std::nullopt;
  return pattern;
}

Image to_elements(const Pattern& pattern, ScalarType type, Criterion method) {
  Image elements(pattern.values.size(), type);
  visit_scalar(type, [&]<typename T>(T) {
    std::array<double, 2> stretch{1, 0};
    if constexpr (!std::is_floating_point_v<T>) stretch = gain_and_offset<T>(pattern, method);
    const double gain = stretch[0], offset = stretch[1];
    for_each_pixel(pattern.values, [&](int x, int y, double value) {
      value = gain * value + offset;
      if constexpr (!std::is_floating_point_v<T>)
        value = std::clamp<double>(std::round(value), std::numeric_limits<T>::min(),
                                   std::numeric_limits<T>::max());
      elements.row<T>(y)[x] = static_cast<T>(value);
    });
  });
  return elements;
}

}  // namespace dic::match
