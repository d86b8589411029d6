#pragma once

#include <algorithm>
#include <cmath>
#include <dic/calibrate.hpp>
#include <dic/image.hpp>
#include <opencv2/calib3d.hpp>
#include <random>

/// Targets as a known camera sees them: every pixel is the mean over samples of the exact pattern, with
/// noise.
namespace dic {

/// Pose of a target in the axes of a camera: a rotation vector, rad, and a translation, mm.
struct Pose {
  cv::Vec3d turn, shift;
};

inline cv::Matx33d homography_of(const Lens& l, const Pose& pose) {
  cv::Matx33d r;
  cv::Rodrigues(pose.turn, r);
  const auto& t = pose.shift;
  return cv::Matx33d(l.fx, 0, l.cx, 0, l.fy, l.cy, 0, 0, 1) *
         cv::Matx33d(r(0, 0), r(0, 1), t[0], r(1, 0), r(1, 1), t[1], r(2, 0), r(2, 1), t[2]);
}

/// Dots on a grid; those at (0, 0), (5, 0), (0, 3) are rings. irregular_mm: how far dots are from their
/// places.
inline bool is_dark_ring_grid(const Target& target, double x, double y, double irregular_mm) {
  const double s = target.square_mm, i = std::round(x / s), j = std::round(y / s);
  if (i < -2 || j < -2 || i > 8 || j > 6) return false;
  const double off = irregular_mm * std::sin(2.1 * i + 3.7 * j * j),
               off_y = irregular_mm * std::cos(1.3 * i * j + 5.0 * j);
  const double far = std::hypot(x - i * s - off, y - j * s - off_y);
  const bool is_ring = (i == 0 && j == 0) || (i == 5 && j == 0) || (i == 0 && j == 3);
  return far < 0.28 * s && !(is_ring && far < 0.13 * s);
}

inline bool is_dark(const Target& target, double x, double y, double irregular_mm = 0) {
  const double s = target.square_mm;
  if (target.pattern == TargetPattern::rings) return is_dark_ring_grid(target, x, y, irregular_mm);
  if (target.pattern == TargetPattern::checkerboard) {
    const double i = std::floor(x / s), j = std::floor(y / s);
    return i >= -1 && j >= -1 && i < target.columns && j < target.rows && std::fmod(i + j + 2, 2) == 0;
  }
  if (target.pattern == TargetPattern::circles) {
    const double i = std::clamp(std::round(x / s), 0.0, target.columns - 1.0);
    const double j = std::clamp(std::round(y / s), 0.0, target.rows - 1.0);
    return std::hypot(x - i * s, y - j * s) < 0.3 * s;
  }
  const int row = static_cast<int>(std::round(y / s));
  for (int j = std::max(0, row - 1); j <= std::min(target.rows - 1, row + 1); ++j) {
    const double i = std::clamp(std::round((x / s - j % 2) / 2), 0.0, target.columns - 1.0);
    if (std::hypot(x - (2 * i + j % 2) * s, y - j * s) < 0.5 * s) return true;
  }
  return false;
}

struct RenderedTarget {
  Size size;
  double noise = 0;  ///< grey levels
  unsigned seed = 1;
  double white = 220;
  int samples = 5;          ///< per pixel and direction
  double irregular_mm = 0;  ///< rings: error of the dots' places

  /// The share of a pixel that is dark. map: from an offset within the pixel to the target, mm.
  template <typename Map>
  double darkness(const Target& target, const Map& map) const {
    const auto at = [&](double dx, double dy) {
      const auto [x, y] = map(dx, dy);
      return is_dark(target, x, y, irregular_mm) ? 1 : 0;
    };
    const int corners = at(-0.5, -0.5) + at(0.5, -0.5) + at(-0.5, 0.5) + at(0.5, 0.5) + at(0, 0);
    if (corners == 0 || corners == 5) return corners / 5;  // nothing is smaller than a pixel
    int dark = 0;
    for (int k = 0; k < samples * samples; ++k)
      dark += at((k % samples + 0.5) / samples - 0.5, (k / samples + 0.5) / samples - 0.5);
    return static_cast<double>(dark) / (samples * samples);
  }

  Image seen(const Lens& lens, const Pose& pose, const Target& target) const {
    const Camera camera({size, lens, {}});
    const cv::Matx33d mm_from_ideal = homography_of(lens, pose).inv();
    std::mt19937 random(seed);
    std::normal_distribution<double> grey(0, noise);
    Image image(size, ScalarType::u8);
    for (int y = 0; y < size.height; ++y)
      for (int x = 0; x < size.width; ++x) {
        const auto [middle, j] = camera.undistort_with_jacobian(x, y);
        const double dark = darkness(target, [&, m = middle, j = j](double dx, double dy) {
          const cv::Vec3d mm =
              mm_from_ideal * cv::Vec3d(m.x + j.xx * dx + j.xy * dy, m.y + j.yx * dx + j.yy * dy, 1);
          return std::pair(mm[0] / mm[2], mm[1] / mm[2]);
        });
        const double value = white - (white - 30) * dark + (noise > 0 ? grey(random) : 0);
        image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::clamp(std::round(value), 0.0, 255.0));
      }
    return image;
  }
};

}  // namespace dic
