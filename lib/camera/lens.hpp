#pragma once

#include <dic/camera.hpp>
#include <optional>

namespace dic::camera {

using Point = Camera::Point;
using Jacobian = Camera::Jacobian;

/// A position and how it changes with the position that it came from.
struct Mapped {
  Point point;
  Jacobian jacobian;
};

/// From ideal pixels to image pixels.
Mapped distort(const Lens& lens, Point ideal);

/// The ideal pixel that is seen at (x, y), by Newton's method; none where it does not converge or the lens
/// folds the image.
std::optional<Point> undistort(const Lens& lens, Point seen);

/// Through a homography (row-major). NaN on and beyond the horizon, where its last coordinate is not
/// positive.
Mapped project(const std::array<double, 9>& homography, Point p);

std::array<double, 9> product(const std::array<double, 9>& a, const std::array<double, 9>& b);
/// The adjugate over the determinant.
std::array<double, 9> inverse(const std::array<double, 9>& m);
double determinant(const std::array<double, 9>& m);

Jacobian product(const Jacobian& a, const Jacobian& b);
Jacobian inverse(const Jacobian& j);
inline double determinant(const Jacobian& j) { return j.xx * j.yy - j.xy * j.yx; }

}  // namespace dic::camera
