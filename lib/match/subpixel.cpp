#include "match/subpixel.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <optional>
#include <vector>

namespace dic::match {
namespace {

constexpr int kMaxSteps = 20;
constexpr double kTolerance = 1e-6;  ///< px
constexpr double kMaxOffset = 1;     ///< largest distance from the whole-pixel maximum, px
/// Pixels around a pattern: the spline's memory of a wrong neighbour decays by 0.43 per pixel, here to 1e-5.
constexpr int kContext = 14;
/// Standard deviation, as a fraction of the mean, below which it is rounding and not contrast.
constexpr double kNoContrast = 1e-12;

/// The elements inside the pattern's mask with the image's values at the same places.
class Comparison {
 public:
  Comparison(const Pattern& pattern, ImageView image, const Candidate& at, core::ThreadPool& pool,
             const std::stop_token& stop)
      : width_(pattern.values.width()),
        height_(pattern.values.height()),
        left_(std::max(at.x - kContext, 0)),
        top_(std::max(at.y - kContext, 0)),
        x_(at.x - left_),
        y_(at.y - top_),
        pattern_(pattern),
        stop_(stop),
        spline_(around(image, at), pool) {}

  /// Looks at the image with the pattern `x`, `y` px away from the candidate.
  void move_to(double x, double y) {
    if (stop_.stop_requested()) throw Cancelled("Template matching was cancelled.");
    spline_.block(x_ + x, y_ + y, width_, height_, block_);
  }

  /// Calls function(pattern value, image value, its x gradient, its y gradient).
  template <typename Function>
  void for_each(Function&& function) const {
    const double* value = pattern_.values.row<double>(0);
    const std::uint8_t* counts = pattern_.mask.row<std::uint8_t>(0);
    for (std::size_t k = 0; k < block_.value.size(); ++k)
      if (counts[k]) function(value[k], block_.value[k], block_.dx[k], block_.dy[k]);
  }

 private:
  ImageView around(ImageView image, const Candidate& at) const {
    ImageView window = image;
    window.width = std::min(at.x + width_ + kContext, image.width) - left_;
    window.height = std::min(at.y + height_ + kContext, image.height) - top_;
    window.data = static_cast<const std::byte*>(image.data) + top_ * image.row_bytes +
                  static_cast<std::ptrdiff_t>(left_ * size_of(image.type));
    return window;
  }

  int width_, height_;
  int left_, top_;  ///< corner of the window that the spline covers, image px
  int x_, y_;       ///< position of the candidate in the window
  const Pattern& pattern_;
  const std::stop_token& stop_;
  QuinticSpline spline_;
  QuinticSpline::Block block_;
};

struct Means {
  double pattern = 0, image = 0;
};

Means means(const Comparison& comparison) {
  Means sums;
  std::int64_t n = 0;
  comparison.for_each([&](double f, double g, double, double) {
    sums.pattern += f;
    sums.image += g;
    ++n;
  });
  return {sums.pattern / n, sums.image / n};
}

double score(const Comparison& comparison, Criterion method) {
  const Means mean = means(comparison);
  const Means origin = method == Criterion::zncc ? mean : Means{};
  double ff = 0, gg = 0, fg = 0, difference = 0, rounding = 0;
  comparison.for_each([&](double f, double g, double, double) {
    f -= origin.pattern;
    g -= origin.image;
    ff += f * f;
    gg += g * g;
    fg += f * g;
    difference += (f - g) * (f - g);
    rounding += kNoContrast * kNoContrast * mean.image * mean.image;
  });
  if (method == Criterion::ssd) return ff + gg > 0 ? 1 - difference / (ff + gg) : difference == 0;
  return ff > 0 && gg > rounding ? std::clamp(fg / std::sqrt(ff * gg), -1.0, 1.0) : 0;
}

/// A Gauss-Newton step: least squares of pattern = gain * (image + step . gradient) + offset.
std::optional<Eigen::Vector2d> newton_step(const Comparison& comparison) {
  const Means mean = means(comparison);
  // Scalars instead of a matrix, whose symmetric half would be summed twice, in memory.
  double gg = 0, gx = 0, gy = 0, g1 = 0, xx = 0, xy = 0, x1 = 0, yy = 0, y1 = 0, n = 0;
  double fg = 0, fx = 0, fy = 0, f1 = 0;
  comparison.for_each([&](double f, double g, double dx, double dy) {
    f -= mean.pattern;
    g -= mean.image;
    gg += g * g, gx += g * dx, gy += g * dy, g1 += g;
    xx += dx * dx, xy += dx * dy, x1 += dx;
    yy += dy * dy, y1 += dy, n += 1;
    fg += f * g, fx += f * dx, fy += f * dy, f1 += f;
  });
  Eigen::Matrix4d normal;
  normal << gg, gx, gy, g1, gx, xx, xy, x1, gy, xy, yy, y1, g1, x1, y1, n;
  const Eigen::FullPivLU<Eigen::Matrix4d> factors(normal);
  if (!factors.isInvertible()) return std::nullopt;
  const Eigen::Vector4d solution = factors.solve(Eigen::Vector4d(fg, fx, fy, f1));
  const double gain = solution[0];
  if (!(gain > 0)) return std::nullopt;
  return Eigen::Vector2d(solution[1] / gain, solution[2] / gain);
}

/// Offset from the candidate at which the pattern fits best; nothing if the steps do not converge near it.
std::optional<Eigen::Vector2d> best_offset(Comparison& comparison) {
  Eigen::Vector2d offset = Eigen::Vector2d::Zero();
  for (int k = 0; k < kMaxSteps; ++k) {
    comparison.move_to(offset.x(), offset.y());
    const auto step = newton_step(comparison);
    if (!step) return std::nullopt;
    offset += *step;
    if (!(offset.lpNorm<Eigen::Infinity>() <= kMaxOffset)) return std::nullopt;
    if (step->norm() < kTolerance) return offset;
  }
  return std::nullopt;
}

}  // namespace

SubpixelFit fit_subpixel(const Pattern& pattern, ImageView image, const Candidate& candidate,
                         Criterion method, core::ThreadPool& pool, const std::stop_token& stop) {
  Comparison comparison(pattern, image, candidate, pool, stop);
  const auto offset =
      best_offset(comparison).value_or(Eigen::Vector2d(candidate.offset_x, candidate.offset_y));
  comparison.move_to(0, 0);
  const double at_pixel = score(comparison, method);
  comparison.move_to(offset.x(), offset.y());
  const double refined = score(comparison, method);
  if (refined < at_pixel)
    return {static_cast<double>(candidate.x), static_cast<double>(candidate.y), at_pixel};
  return {candidate.x + offset.x(), candidate.y + offset.y(), refined};
}

}  // namespace dic::match
