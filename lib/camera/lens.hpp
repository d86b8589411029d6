#pragma once

#include <dic/camera.hpp>
#include <optional>

namespace dic::camera {

using Point = Camera::Point;
using Jacobian = Camera::Jacobian;

/// A mapped position and its derivatives with respect to the original position.
struct Mapped {
  Point point;
  Jacobian jacobian;
};

/// Maps ideal pixels to image pixels.
Mapped distort(const Lens& lens, Point ideal);

/// The ideal pixel that appears at `seen` in the image, by Newton's method; nothing if it does not converge
/// or the lens folds the image.
std::optional<Point> undistort(const Lens& lens, Point seen);

/// Maps a point by a homography (row-major). NaN on and beyond the horizon, where the last coordinate is not
/// positive.
Mapped project(const std::array<double, 9>& homography, Point p);

std::array<double, 9> product(const std::array<double, 9>& a, const std::array<double, 9>& b);
/// The inverse: the adjugate divided by the determinant.
std::array<double, 9> inverse(const std::array<double, 9>& m);
double determinant(const std::array<double, 9>& m);

Jacobian product(const Jacobian& a, const Jacobian& b);
Jacobian inverse(const Jacobian& j);
inline double determinant(const Jacobian& j) { return j.xx * j.yy - j.xy * j.yx; }

}  // namespace dic::camera
