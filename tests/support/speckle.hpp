#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <dic/image.hpp>
#include <random>
#include <vector>

/// Analytic speckle for tests, evaluated in double; shares no code with the library's generator.
namespace dic::test {

/// Random bumps of both signs: a smooth random function of mean 0 and standard deviation 1.
class Speckle {
 public:
  /// A speckle defined over [-margin, width + margin] x [-margin, height + margin]. sigma: of a bump, px.
  Speckle(int width, int height, double sigma, unsigned seed, double margin = 24)
      : sigma_(sigma),
        cell_(kReach * sigma),
        left_(-margin - cell_),
        top_(left_),
        columns_(static_cast<int>((width - 2 * left_) / cell_) + 1),
        rows_(static_cast<int>((height - 2 * top_) / cell_) + 1),
        cells_(static_cast<std::size_t>(columns_) * rows_) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> x(0, columns_ * cell_), y(0, rows_ * cell_);
    const double area = (columns_ * cell_) * (rows_ * cell_);
    const double density = kOverlap / (M_PI * sigma * sigma);
    for (int n = static_cast<int>(area * density); n > 0; --n) {
      const Bump bump{x(random), y(random), n % 2 ? kAmplitude : -kAmplitude};
      cells_[static_cast<int>(bump.y / cell_) * columns_ + static_cast<int>(bump.x / cell_)].push_back(bump);
    }
  }

  double operator()(double x, double y) const {
    x -= left_;
    y -= top_;
    const int column = static_cast<int>(std::floor(x / cell_)), row = static_cast<int>(std::floor(y / cell_));
    double sum = 0;
    for (int r = std::max(0, row - 1); r <= std::min(rows_ - 1, row + 1); ++r)
      for (int c = std::max(0, column - 1); c <= std::min(columns_ - 1, column + 1); ++c)
        for (const Bump& b : cells_[r * columns_ + c]) {
          const double d2 = (x - b.x) * (x - b.x) + (y - b.y) * (y - b.y);
          if (d2 < cell_ * cell_) sum += b.amplitude * std::exp(-d2 / (2 * sigma_ * sigma_));
        }
    return sum;
  }

 private:
  struct Bump {
    double x, y, amplitude;
  };
  static constexpr double kReach = 5;    ///< cutoff, sigmas: a bump is below 4e-6 there
  static constexpr double kOverlap = 3;  ///< bumps per pi sigma^2
  /// The variance of the sum is density * pi sigma^2 * amplitude^2.
  static constexpr double kAmplitude = 0.57735026918962576;  // 1 / sqrt(kOverlap)

  double sigma_, cell_, left_, top_;
  int columns_, rows_;
  std::vector<std::vector<Bump>> cells_;
};

/// Grey level of a value of the speckle; within 20..240 for all but 1 pixel in 2000.
inline double grey_of(double value) { return 130 + 31 * value; }

/// An f32 image of function(x, y).
template <typename Function>
Image image_of(int width, int height, const Function& function) {
  Image out({width, height}, ScalarType::f32);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) out.row<float>(y)[x] = static_cast<float>(function(x, y));
  return out;
}

/// Independent random grey levels 0 .. 255.
inline Image random_image(int width, int height, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> grey(0, 255);
  return image_of(width, height, [&](int, int) { return std::round(grey(random)); });
}

/// The f32 image as `type`: values times `factor`, rounded and clamped for integers.
template <typename T>
Image converted(const Image& image, ScalarType type, double factor = 1) {
  Image out(image.size(), type);
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) {
      double value = factor * image.row<float>(y)[x];
      if constexpr (std::is_integral_v<T>)
        value = std::clamp(std::round(value), 0.0, static_cast<double>(std::numeric_limits<T>::max()));
      out.row<T>(y)[x] = static_cast<T>(value);
    }
  return out;
}

/// The f32 image with normally distributed noise.
inline Image noisy(const Image& image, double sd, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, sd);
  return image_of(image.width(), image.height(),
                  [&](int x, int y) { return image.row<float>(y)[x] + noise(random); });
}

}  // namespace dic::test
