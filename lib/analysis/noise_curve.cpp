#include "analysis/noise_curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <type_traits>

namespace dic::analysis {
namespace {

constexpr int kClasses = 32;
constexpr std::int64_t kLeastPixels =
    500;  // smallest number of pixels of a class, whose noise is then known to 3 %
constexpr std::int64_t kPixelsPerFrame = 2'000'000;  // most pixels of a frame, enough for any camera
constexpr double kLargestMotion = 0.5;               // largest motion of a usable frame, px

/// Mean of a component over the points with values, px.
double mean_of(const NodeValues<double>& values, const NodeValues<Status>& status) {
  double sum = 0, n = 0;
  for (std::size_t k = 0; k < values.size(); ++k)
    if (has_values(status[k])) sum += values[k], n += 1;
  return sum / n;
}

template <typename T>
constexpr bool saturates(T value) {
  if constexpr (std::is_floating_point_v<T>) return false;
  return value == std::numeric_limits<T>::min() || value == std::numeric_limits<T>::max();
}

/// Variance of differences that are normal but for a few outliers, which are far from the median and do not
/// count. grain: smallest difference of two pixels.
double robust_variance(std::vector<float>& differences, double grain) {
  const auto median_of = [](std::vector<float>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return double{*middle};
  };
  const double median = median_of(differences);
  std::vector<float> distances;
  for (const float d : differences) distances.push_back(std::abs(d - static_cast<float>(median)));
  const double limit = 5 * (1.4826 * median_of(distances) + grain / 2);
  double n = 0, sum = 0, squares = 0;
  for (const float d : differences) {
    const double about = d - median;
    if (std::abs(about) > limit) continue;
    n += 1, sum += about, squares += about * about;
  }
  return std::max(squares / n - sum / n * (sum / n), 0.0);
}

/// Mean motion from one image to another, px.
struct Motion {
  double u, v;
};

/// Pixels by classes of their grey value: class k begins at darkest + k * width.
struct GreyClasses {
  double darkest, width;
  std::vector<std::vector<float>> differences = std::vector<std::vector<float>>(kClasses);
  std::vector<double> greys = std::vector<double>(kClasses);  ///< sums of the grey values

  void add(double grey, double difference) {
    const auto k = static_cast<std::size_t>(std::clamp((grey - darkest) / width, 0.0, kClasses - 1.0));
    differences[k].push_back(static_cast<float>(difference));
    greys[k] += grey;
  }
};

template <typename T>
void gather(ImageView f, ImageView g, const Motion& motion, GreyClasses& classes) {
  const std::int64_t pixels = std::int64_t{f.width} * f.height;
  const int stride = static_cast<int>(1 + pixels / kPixelsPerFrame);
  for (int y = 1; y + 1 < f.height; ++y) {
    const auto row = [&](ImageView image, int dy) { return image.row<T>(y + dy); };
    for (int x = 1 + y % stride; x + 1 < f.width; x += stride) {
      const T here = row(f, 0)[x], there = row(g, 0)[x];
      if (saturates(here) || saturates(there)) continue;
      const auto both = [&](int dx, int dy) {
        return double(row(f, dy)[x + dx]) + double(row(g, dy)[x + dx]);
      };
      const double slope_x = (both(1, 0) - both(-1, 0)) / 4, slope_y = (both(0, 1) - both(0, -1)) / 4;
      const double grey = (double(here) + double(there)) / 2;
      classes.add(grey, double(there) - double(here) + motion.u * slope_x + motion.v * slope_y);
    }
  }
}

}  // namespace

NoiseCurve::NoiseCurve(ImageView reference)
    : reference_(reference),
      darkest_(std::numeric_limits<double>::infinity()),
      brightest_(-darkest_),
      classes_(kClasses) {
  visit_scalar(reference.type, [&]<typename T>(T) {
    for (int y = 0; y < reference.height; ++y) {
      const auto [least, most] =
          std::minmax_element(reference.row<T>(y), reference.row<T>(y) + reference.width);
      darkest_ = std::min(darkest_, double(*least)), brightest_ = std::max(brightest_, double(*most));
    }
  });
}

bool NoiseCurve::add(ImageView frame, const Field& field) {
  const double u = mean_of(field.u, field.status), v = mean_of(field.v, field.status);
  if (!(std::hypot(u, v) <= kLargestMotion) || !(brightest_ > darkest_)) return false;
  GreyClasses gathered{darkest_, (brightest_ - darkest_) / kClasses};
  bool is_integer = false;
  visit_scalar(frame.type, [&]<typename T>(T) {
    is_integer = std::is_integral_v<T>;
    gather<T>(reference_, frame, {u, v}, gathered);
  });
  for (std::size_t k = 0; k < classes_.size(); ++k) {
    const auto pixels = std::ssize(gathered.differences[k]);
    if (pixels < kLeastPixels) continue;
    Class& c = classes_[k];
    // Half of the variance, since both images are noisy.
    c.variance +=
        robust_variance(gathered.differences[k], is_integer ? 1 : 0) / 2 * static_cast<double>(pixels);
    c.grey += gathered.greys[k];
    c.pixels += pixels;
  }
  return true;
}

std::vector<NoiseAtGrey> NoiseCurve::result() const {
  std::vector<NoiseAtGrey> curve;
  for (const Class& c : classes_) {
    const auto n = static_cast<double>(c.pixels);
    if (c.pixels > 0) curve.push_back({c.grey / n, std::sqrt(c.variance / n), c.pixels});
  }
  return curve;
}

}  // namespace dic::analysis
