#pragma once

#include <algorithm>
#include <cmath>
#include <dic/match.hpp>
#include <functional>
#include <random>

#include "match/box.hpp"
#include "match/candidates.hpp"

namespace dic::test {

using Map = std::function<std::array<double, 2>(double, double)>;

/// A speckle of Gaussian blobs that can be evaluated at any position, without interpolation.
class Speckle {
 public:
  Speckle(int width, int height, double sigma, unsigned seed)
      : sigma_(sigma), columns_(cell(width + kMargin)), cells_(columns_ * cell(height + kMargin)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> x(-kMargin, width + kMargin), y(-kMargin, height + kMargin),
        grey(-1, 1);
    const double size = (width + 2 * kMargin) * (height + 2 * kMargin);
    for (int k = 0; k < size / (4 * sigma * sigma); ++k) {
      const Blob blob{x(random), y(random), grey(random)};
      cells_[(cell(blob.y) - 1) * columns_ + cell(blob.x) - 1].push_back(blob);
    }
  }

  double at(double x, double y) const {
    const int i = cell(x) - 1, j = cell(y) - 1, rows = static_cast<int>(cells_.size()) / columns_;
    double sum = 0;
    for (int row = std::max(j - 1, 0); row <= std::min(j + 1, rows - 1); ++row)
      for (int column = std::max(i - 1, 0); column <= std::min(i + 1, columns_ - 1); ++column)
        for (const Blob& blob : cells_[row * columns_ + column]) {
          const double d2 = (x - blob.x) * (x - blob.x) + (y - blob.y) * (y - blob.y);
          sum += blob.grey * std::exp(-d2 / (2 * sigma_ * sigma_));
        }
    return sum;
  }

 private:
  struct Blob {
    double x, y, grey;
  };
  static constexpr double kMargin = 10;

  /// Cell of a position, counted from 1. Cells are 6 sigma wide, so blobs two cells away are invisible.
  int cell(double position) const {
    return 1 + static_cast<int>(std::floor(std::max(position + kMargin, 0.0) / (6 * sigma_)));
  }

  double sigma_;
  int columns_;
  std::vector<std::vector<Blob>> cells_;
};

/// Image whose pixel q shows the speckle at `material(q)`, with grey levels of about mean +- amplitude.
inline Image render(
    const Speckle& speckle, int width, int height, ScalarType type, double mean, double amplitude,
    const Map& material = [](double x, double y) {
      return std::array{x, y};
    }) {
  Image image({width, height}, type);
  visit_scalar(type, [&]<typename T>(T) {
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const auto [mx, my] = material(x, y);
        const double grey = mean + amplitude * speckle.at(mx, my);
        image.row<T>(y)[x] = std::is_floating_point_v<T> ? static_cast<T>(grey)
                                                         : static_cast<T>(std::lround(std::max(grey, 0.0)));
      }
  });
  return image;
}

inline ImageView crop(const Image& image, int x, int y, int width, int height) {
  ImageView view = image;
  view.data = static_cast<const std::byte*>(view.data) + y * view.row_bytes +
              static_cast<std::ptrdiff_t>(x * size_of(view.type));
  view.width = width;
  view.height = height;
  return view;
}

inline Image noise_image(int width, int height, unsigned seed) {
  Image image({width, height}, ScalarType::u8);
  std::mt19937 random(seed);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(random() >> 24);
  return image;
}

inline Image constant_image(int width, int height, std::uint8_t grey) {
  Image image({width, height}, ScalarType::u8);
  for (int y = 0; y < height; ++y) std::fill_n(image.row<std::uint8_t>(y), width, grey);
  return image;
}

inline MatchOptions cpu_options() {
  MatchOptions options;
  options.device = "cpu";
  options.threads = 2;
  return options;
}

inline MatchResult find_one(ImageView wanted, ImageView image, const MatchOptions& options,
                            ImageView mask = {}) {
  const std::span<const ImageView> masks(&mask, mask.empty() ? 0 : 1);
  return match_templates({&wanted, 1}, {&image, 1}, options, masks);
}

}  // namespace dic::test
