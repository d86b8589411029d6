#include "match/pose_template.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace dic::match {
namespace {

constexpr int kLeastSide = 11;       ///< of the smaller side at the coarsest level, px, but
constexpr int kLeastNarrowSide = 5;  ///< of elongated templates, if
constexpr int kLeastPixels = 110;    ///< so many pixels are left
/// Least contrast of the coarsest level, as a fraction of that of full resolution: fine textures average out.
constexpr double kLeastContrast = 0.2;
constexpr int kListPixels = 2000;            ///< pixels of the lists of levels, roughly
constexpr int kManyPixels = 30000;           ///< pixels of the longer list of full resolution
constexpr int kTile = 8;                     ///< pixels of a list are ordered by tiles of this size
constexpr int kOutlineFrom = 24;             ///< templates from this size on lose their outermost pixels
constexpr double kSymmetric = 0.3;           ///< least correlation of a template with its turned copy
constexpr double kRound = 0.9;               ///< least correlation with copies at any angle, if it is round
constexpr int kLeastPartPixels = 60;         ///< of a part of the coarsest pattern that is compared alone
constexpr double kLeastPartContrast = 0.25;  ///< of such a part, as a share of the variance of the pattern
constexpr float kPartWeight = 0.95F;         ///< of its score: less resembles more

struct Pixel {
  int x, y;
};

/// Derivative of fourth order from five samples, of lower order beside the border.
float derivative(const float* p, std::ptrdiff_t step, int at, int size) {
  if (at >= 2 && at < size - 2) return (8 * (p[step] - p[-step]) - (p[2 * step] - p[-2 * step])) / 12;
  if (at >= 1 && at < size - 1) return (p[step] - p[-step]) / 2;
  if (size < 2) return 0;
  return at == 0 ? p[step] - p[0] : p[0] - p[-step];
}

float gradient_x(const FloatImage& v, Pixel p) { return derivative(v.row(p.y) + p.x, 1, p.x, v.width); }
float gradient_y(const FloatImage& v, Pixel p) {
  return derivative(v.row(p.y) + p.x, v.width, p.y, v.height);
}

/// The squared contrast of a template by which residuals are judged.
///
/// It is the variance or, of a few marks on an even ground, whose variance is small, a share of their own
/// squared contrast: else what interpolation leaves at their edges would count as hidden. In random textures
/// and in patterns of two even halves, the variance is the larger one.
double squared_contrast(const PixelList& list) {
  constexpr double kOfMarks = 0.33;
  double squares = 0, fourth = 0;
  for (int k = 0; k < list.count; ++k) {
    const double square = static_cast<double>(list.t[k]) * list.t[k];
    squares += square, fourth += square * square;
  }
  return squares > 0 ? std::max(squares / list.count, kOfMarks * fourth / squares) : 0;
}

PixelList list_of(const TemplateLevel& level, const std::vector<Pixel>& pixels) {
  PixelList list;
  list.count = static_cast<int>(pixels.size());
  const std::size_t padded = (pixels.size() + PixelList::kBlock - 1) / PixelList::kBlock * PixelList::kBlock;
  for (auto* array : {&list.xi, &list.eta, &list.t, &list.tx, &list.ty}) array->assign(padded, 0.0F);
  double mean = 0;
  for (const Pixel& p : pixels) mean += level.values.row(p.y)[p.x];
  mean /= std::max<std::size_t>(1, pixels.size());
  list.mean = mean;
  for (std::size_t k = 0; k < pixels.size(); ++k) {
    const Pixel& p = pixels[k];
    list.xi[k] = static_cast<float>(p.x - level.center_x);
    list.eta[k] = static_cast<float>(p.y - level.center_y);
    list.t[k] = static_cast<float>(level.values.row(p.y)[p.x] - mean);
    list.tx[k] = gradient_x(level.values, p);
    list.ty[k] = gradient_y(level.values, p);
  }
  const int stride = pose::median_stride(list.count);
  list.squares = squared_contrast(list) * ((list.count + stride - 1) / stride);
  return list;
}

template <typename Visit>
void for_tiles(const FloatImage& image, int size, const Visit& visit) {
  for (int y = 0; y < image.height; y += size)
    for (int x = 0; x < image.width; x += size)
      visit(x, y, std::min(x + size, image.width), std::min(y + size, image.height));
}

/// All pixels that count, ordered by tiles. inset: so many pixels around must count, too.
std::vector<Pixel> all_pixels(const FloatImage& mask, int inset) {
  std::vector<Pixel> pixels;
  const auto counts = [&](int x, int y) {
    for (int j = y - inset; j <= y + inset; ++j)
      for (int i = x - inset; i <= x + inset; ++i)
        if (i < 0 || j < 0 || i >= mask.width || j >= mask.height || mask.row(j)[i] == 0) return false;
    return true;
  };
  for_tiles(mask, kTile, [&](int x0, int y0, int x1, int y1) {
    for (int y = y0; y < y1; ++y)
      for (int x = x0; x < x1; ++x)
        if (counts(x, y)) pixels.push_back({x, y});
  });
  return pixels;
}

/// The pixel with the largest gradient of each square, so that about kListPixels are left.
std::vector<Pixel> strong_pixels(const TemplateLevel& level, std::size_t count, int wanted) {
  const int side = static_cast<int>(std::lround(std::sqrt(static_cast<double>(count) / wanted)));
  if (side < 2) return all_pixels(level.mask, 0);
  std::vector<Pixel> pixels;
  for_tiles(level.mask, side, [&](int x0, int y0, int x1, int y1) {
    Pixel best{-1, -1};
    float most = -1;
    for (int y = y0; y < y1; ++y)
      for (int x = x0; x < x1; ++x) {
        if (level.mask.row(y)[x] == 0) continue;
        const float gx = gradient_x(level.values, {x, y}), gy = gradient_y(level.values, {x, y});
        if (gx * gx + gy * gy > most) most = gx * gx + gy * gy, best = {x, y};
      }
    if (most >= 0) pixels.push_back(best);
  });
  return pixels;
}

void finish(TemplateLevel& level) {
  const std::vector<Pixel> pixels = all_pixels(level.mask, 0);
  double sum = 0, squares = 0;
  for (const Pixel& p : pixels) {
    const double v = level.values.row(p.y)[p.x];
    sum += v, squares += v * v;
    level.rim = std::max(level.rim, std::hypot(p.x - level.center_x, p.y - level.center_y));
  }
  const double n = static_cast<double>(std::max<std::size_t>(1, pixels.size()));
  level.deviation = std::sqrt(std::max(0.0, squares / n - sum * sum / (n * n)));
  level.pixels = list_of(level, strong_pixels(level, pixels.size(), kListPixels));
}

/// Leaves out pixels that show the background as well, if enough others are left: in a dim part, the
/// background's contrast would surpass that of the part.
void leave_outline_out(TemplateLevel& level) {
  const std::vector<Pixel> inner = all_pixels(level.mask, 1);
  if (inner.size() < kLeastPixels) return;
  std::ranges::fill(level.mask.values, 0.0F);
  for (const Pixel& p : inner) level.mask.row(p.y)[p.x] = 1;
  level.rim = 0;
  finish(level);
}

/// Value at a position by bilinear interpolation, clamped to the image.
float value_at(const FloatImage& image, double x, double y) {
  x = std::clamp(x, 0.0, image.width - 1.0), y = std::clamp(y, 0.0, image.height - 1.0);
  const int i = std::min(static_cast<int>(x), std::max(0, image.width - 2)),
            j = std::min(static_cast<int>(y), std::max(0, image.height - 2));
  const int right = std::min(i + 1, image.width - 1), below = std::min(j + 1, image.height - 1);
  const float a = static_cast<float>(x - i), b = static_cast<float>(y - j);
  const float top = image.row(j)[i] * (1 - a) + image.row(j)[right] * a;
  const float bottom = image.row(below)[i] * (1 - a) + image.row(below)[right] * a;
  return top * (1 - b) + bottom * b;
}

bool counts_at(const FloatImage& mask, double x, double y) {
  const int i = static_cast<int>(std::floor(x + 0.5)), j = static_cast<int>(std::floor(y + 0.5));
  return i >= 0 && j >= 0 && i < mask.width && j < mask.height && mask.row(j)[i] != 0;
}

/// Correlation of a template with its turned copy.
double similarity_to_turned(const TemplateLevel& level, double radians) {
  const double c = std::cos(radians), s = std::sin(radians);
  double n = 0, a = 0, b = 0, aa = 0, bb = 0, ab = 0;
  for (int k = 0; k < level.pixels.count; ++k) {
    const double xi = level.pixels.xi[k], eta = level.pixels.eta[k];
    const double x = level.center_x + c * xi - s * eta, y = level.center_y + s * xi + c * eta;
    if (!counts_at(level.mask, x, y)) continue;
    const double p = level.pixels.t[k], q = value_at(level.values, x, y);
    ++n, a += p, b += q, aa += p * p, bb += q * q, ab += p * q;
  }
  if (n < 0.7 * level.pixels.count) return 0;
  const double power = (n * aa - a * a) * (n * bb - b * b);
  return power > 0 ? (n * ab - a * b) / std::sqrt(power) : 0;
}

/// Subtracts the mean and sums up the parts.
void set_parts(CoarsePattern& pattern) {
  const auto count = static_cast<double>(std::max<std::size_t>(1, pattern.elements.size()));
  double sum = 0;
  for (const CoarsePattern::Element& e : pattern.elements) sum += e.t;
  pattern.mean = sum / count;
  for (CoarsePattern::Element& e : pattern.elements) {
    e.t -= static_cast<float>(pattern.mean);
    pattern.energy += static_cast<double>(e.t) * e.t;
  }
  for (int p = 0; p <= CoarsePattern::kSides; ++p) {
    double n = 0, t = 0, tt = 0;
    for (int block = 0; block < CoarsePattern::kBlocks; ++block) {
      if (!CoarsePattern::has(p, block)) continue;
      for (std::size_t k = pattern.element_begin[block]; k < pattern.element_begin[block + 1]; ++k) {
        const double value = pattern.elements[k].t;
        ++n, t += value, tt += value * value;
      }
    }
    if (n < 1) continue;
    tt -= t * t / n;
    const bool is_enough =
        p == 0 ? tt > 0 : n >= kLeastPartPixels && tt / n >= kLeastPartContrast * pattern.energy / count;
    pattern.parts[p] = {static_cast<float>(n), static_cast<float>(t), static_cast<float>(tt),
                        !is_enough ? 0.0F
                        : p == 0   ? 1.0F
                                   : kPartWeight};
  }
}

/// The middle of a level, of half its sides.
TemplateLevel middle_of(const TemplateLevel& level) {
  TemplateLevel middle;
  const int width = (level.values.width + 1) / 2, height = (level.values.height + 1) / 2;
  const int left = (level.values.width - width) / 2, top = (level.values.height - height) / 2;
  for (const auto& [from, to] : {std::pair(&level.values, &middle.values), {&level.mask, &middle.mask}}) {
    *to = FloatImage(width, height);
    for (int y = 0; y < height; ++y) std::copy_n(from->row(top + y) + left, width, to->row(y));
  }
  middle.center_x = level.center_x - left, middle.center_y = level.center_y - top;
  finish(middle);
  return middle;
}

}  // namespace

/// Halves the template until few pixels, or little of its contrast, would be left.
void PoseTemplate::reduce(double least_scale, core::ThreadPool& pool) {
  for (;;) {
    const TemplateLevel& last = levels_.back();
    TemplateLevel next;
    next.values = reduced(last.values, pool);
    next.mask = reduced_mask(last.mask);
    const double side = least_scale * std::min(next.values.width, next.values.height);
    const double area =
        least_scale * least_scale *
        static_cast<double>(std::count(next.mask.values.begin(), next.mask.values.end(), 1.0F));
    const double aspect = static_cast<double>(std::max(next.values.width, next.values.height)) /
                          std::max(1, std::min(next.values.width, next.values.height));
    if (area < kLeastPixels || side < (aspect > 1.8 ? kLeastNarrowSide : kLeastSide)) return;
    next.center_x = (last.center_x - 0.5) / 2;
    next.center_y = (last.center_y - 0.5) / 2;
    finish(next);
    if (next.deviation < kLeastContrast * levels_[0].deviation) return;
    levels_.push_back(std::move(next));
    ++reduced_;
  }
}

/// Adds middles while a level is large and they have enough of its contrast: the number of products of the
/// coarsest level rises with the sixth power of its sides.
void PoseTemplate::add_middles(double least_scale) {
  constexpr double kLeastMiddle = 30, kLeastOfContrast = 0.7, kLeastOfPixels = 0.2;
  const auto count_of = [](const TemplateLevel& level) {
    return std::count(level.mask.values.begin(), level.mask.values.end(), 1.0F);
  };
  while (reduced_ > 0) {
    const TemplateLevel& last = levels_.back();
    if (least_scale * std::min(last.values.width, last.values.height) < 2 * kLeastMiddle) return;
    TemplateLevel middle = middle_of(last);
    if (middle.deviation < kLeastOfContrast * last.deviation ||
        static_cast<double>(count_of(middle)) < kLeastOfPixels * static_cast<double>(count_of(last)))
      return;
    levels_.push_back(std::move(middle));
  }
}

PoseTemplate::PoseTemplate(const Template& source, double least_scale, core::ThreadPool& pool) {
  TemplateLevel first;
  first.values = float_image(source.values, pool);
  first.mask = float_image(source.mask, pool);
  first.center_x = (first.values.width - 1) / 2.0;
  first.center_y = (first.values.height - 1) / 2.0;
  finish(first);
  levels_.push_back(std::move(first));
  reduce(least_scale, pool);
  add_middles(least_scale);
  for (std::size_t k = 1; k < levels_.size(); ++k) leave_outline_out(levels_[k]);
  const TemplateLevel& base = levels_[0];
  const int inset = std::min(width(), height()) >= kOutlineFrom ? 1 : 0;
  std::vector<Pixel> pixels = all_pixels(base.mask, inset);
  if (pixels.size() < kLeastPixels) pixels = all_pixels(base.mask, 0);
  full_ = list_of(base, pixels);
  if (pixels.size() > 2 * kManyPixels) many_ = list_of(base, strong_pixels(base, pixels.size(), kManyPixels));
  for (const double turn : {180.0, 90.0, -90.0})
    if (similarity_to_turned(base, turn * std::numbers::pi / 180) > kSymmetric) symmetries_.push_back(turn);
  const auto angles = {37.0, 71.0, 113.0, 151.0, 180.0};  // no two share a period
  is_round_ = std::ranges::all_of(angles, [&](double turn) {
    return similarity_to_turned(base, turn * std::numbers::pi / 180) > kRound;
  });
}

CoarsePattern PoseTemplate::coarse_pattern(double radians, double scale, std::ptrdiff_t stride) const {
  const TemplateLevel& level = levels_.back();
  const double c = std::cos(radians) / scale, s = std::sin(radians) / scale;
  const int reach = static_cast<int>(std::ceil(scale * level.rim)) + 1;
  CoarsePattern pattern;
  pattern.left = pattern.top = reach;
  pattern.right = pattern.bottom = -reach;
  std::array<std::vector<CoarsePattern::Element>, CoarsePattern::kBlocks> elements;
  std::array<std::vector<CoarsePattern::Run>, CoarsePattern::kBlocks> runs;
  const double area = scale * scale * level.values.width * level.values.height;
  for (auto& block : elements)  // without it, growing takes longer than filling
    block.reserve(static_cast<std::size_t>(1.2 * area / CoarsePattern::kBlocks) + 8);
  const auto third = [](double position, int size) {
    return std::clamp(static_cast<int>(3 * (position + 0.5) / size), 0, 2);
  };
  for (int j = -reach; j <= reach; ++j) {
    int last = -1;  // block of the pixel to the left
    for (int i = -reach; i <= reach; ++i) {
      const double x = level.center_x + c * i + s * j, y = level.center_y - s * i + c * j;
      if (!counts_at(level.mask, x, y)) {
        last = -1;
        continue;
      }
      const std::ptrdiff_t offset = j * stride + i;
      const int block = 3 * third(y, level.values.height) + third(x, level.values.width);
      if (block != last) runs[block].push_back({offset, offset});
      last = block;
      runs[block].back().end = offset + 1;
      elements[block].push_back({offset, value_at(level.values, x, y)});
      pattern.left = std::min(pattern.left, i), pattern.right = std::max(pattern.right, i);
      pattern.top = std::min(pattern.top, j), pattern.bottom = std::max(pattern.bottom, j);
    }
  }
  for (int block = 0; block < CoarsePattern::kBlocks; ++block) {
    pattern.elements.insert(pattern.elements.end(), elements[block].begin(), elements[block].end());
    pattern.runs.insert(pattern.runs.end(), runs[block].begin(), runs[block].end());
    pattern.element_begin[block + 1] = pattern.elements.size();
    pattern.run_begin[block + 1] = pattern.runs.size();
  }
  set_parts(pattern);
  return pattern;
}

}  // namespace dic::match
