#pragma once

#include <array>
#include <dic/camera.hpp>
#include <dic/shared/two_cameras.hpp>
#include <optional>

namespace dic::camera {

using Point = Camera::Point;
using Jacobian = Camera::Jacobian;

/// A parameter of a lens and its name in files.
struct LensParameter {
  const char* name;
  double Lens::*value;
};
/// All parameters of a lens: after the first four in the order of OpenCV's distortion coefficients, then the
/// skew.
inline constexpr std::array<LensParameter, 13> kLensParameters{{{"fx", &Lens::fx},
                                                                {"fy", &Lens::fy},
                                                                {"cx", &Lens::cx},
                                                                {"cy", &Lens::cy},
                                                                {"k1", &Lens::k1},
                                                                {"k2", &Lens::k2},
                                                                {"p1", &Lens::p1},
                                                                {"p2", &Lens::p2},
                                                                {"k3", &Lens::k3},
                                                                {"k4", &Lens::k4},
                                                                {"k5", &Lens::k5},
                                                                {"k6", &Lens::k6},
                                                                {"skew", &Lens::skew}}};
/// Number of the first parameters, those without distortion.
inline constexpr std::size_t kPinholeParameters = 4;
/// Number of the first parameters that a calibration can estimate: all but the skew.
inline constexpr std::size_t kEstimableParameters = 12;

/// A mapped position and its derivatives with respect to the original position.
struct Mapped {
  Point point;
  Jacobian jacobian;
};

/// The parameters of a lens for the formulas of dic/shared, which the GPU calculates, too.
stereo::LensTerms terms_of(const Lens& lens);

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
