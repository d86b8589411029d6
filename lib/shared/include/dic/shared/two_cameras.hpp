#pragma once

#include <dic/shared/small_matrix.hpp>
#include <limits>

/// Rays of two cameras: where they meet, how far they miss each other, and what noise in the images does, for
/// CPU and GPU.
namespace dic::stereo {

/// A lens, with the parameters and formulas of dic::Lens.
struct LensTerms {
  double fx, fy, cx, cy;
  double k1, k2, p1, p2, k3, k4, k5, k6;
  double skew;
};

/// An image point and its derivative by the ideal pixel.
struct SeenPixel {
  double x, y;
  Matrix2 slope;
};

/// Maps ideal pixels to image pixels.
DIC_HOST_DEVICE inline SeenPixel distorted(const LensTerms& l, double x, double y) {
  const double a = (x - l.cx) / l.fx, b = (y - l.cy) / l.fy, r2 = a * a + b * b;
  const double above = 1 + r2 * (l.k1 + r2 * (l.k2 + r2 * l.k3));
  const double below = 1 + r2 * (l.k4 + r2 * (l.k5 + r2 * l.k6));
  const double q = above / below;
  const double slope_above = l.k1 + r2 * (2 * l.k2 + r2 * 3 * l.k3);
  const double slope_below = l.k4 + r2 * (2 * l.k5 + r2 * 3 * l.k6);
  const double dq = 2 * (slope_above - q * slope_below) / below;  // dq/da = a dq, dq/db = b dq
  const double seen_a = a * q + 2 * l.p1 * a * b + l.p2 * (r2 + 2 * a * a);
  const double seen_b = b * q + l.p1 * (r2 + 2 * b * b) + 2 * l.p2 * a * b;
  const double aa = q + a * a * dq + 2 * l.p1 * b + 6 * l.p2 * a;
  const double ab = a * b * dq + 2 * l.p1 * a + 2 * l.p2 * b;
  const double bb = q + b * b * dq + 6 * l.p1 * b + 2 * l.p2 * a;
  return {l.fx * seen_a + l.skew * seen_b + l.cx, l.fy * seen_b + l.cy,
          matrix2(aa + ab * l.skew / l.fx, (ab * l.fx + bb * l.skew) / l.fy, ab * l.fy / l.fx, bb)};
}

/// An image point as a direction (a, b, 1) in the axes of its camera.
struct Sight {
  double a, b;      ///< NaN where the lens model has no inverse
  Matrix2 from_px;  ///< derivative by the image point

  DIC_HOST_DEVICE bool exists() const { return a - a == 0 && b - b == 0; }
  DIC_HOST_DEVICE Vector3 direction() const { return vector3(a, b, 1); }
};

/// The sight of an image point, by Newton's method; it does not exist if that does not converge or the lens
/// folds the image.
DIC_HOST_DEVICE inline Sight sight_of(const LensTerms& lens, double seen_x, double seen_y) {
  constexpr int kMostSteps = 30;
  constexpr double kLastStep = 1e-7;  // px; Newton's method squares the error, so only rounding remains
  double x = seen_x, y = seen_y;
  for (int step = 0; step < kMostSteps; ++step) {
    const SeenPixel at = distorted(lens, x, y);
    const double det = determinant(at.slope);
    if (!(at.slope(0, 0) > 0 && det > 0)) break;
    const double ex = seen_x - at.x, ey = seen_y - at.y;
    const double dx = (at.slope(1, 1) * ex - at.slope(0, 1) * ey) / det;
    const double dy = (at.slope(0, 0) * ey - at.slope(1, 0) * ex) / det;
    x += dx, y += dy;
    if (std::fmax(std::fabs(dx), std::fabs(dy)) >= kLastStep) continue;
    Matrix2 from_px = inverse(distorted(lens, x, y).slope);
    for (int j = 0; j < 2; ++j) from_px(0, j) /= lens.fx, from_px(1, j) /= lens.fy;
    return {(x - lens.cx) / lens.fx, (y - lens.cy) / lens.fy, from_px};
  }
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  return {none, none, matrix2(none, none, none, none)};
}

/// Derivative of a position by the image points (left x, left y, right x, right y), mm per px.
using FromPixels = SmallMatrix<3, 4>;
/// Covariance of these four, px^2.
using PixelCovariance = SmallMatrix<4, 4>;
using PixelSigmas = SmallMatrix<4, 1>;

/// The position in space at which the rays of two image points meet.
struct Meeting {
  Vector3 position;      ///< position in the axes of the left camera, mm
  FromPixels from_px;    ///< derivative of the position
  PixelSigmas residual;  ///< image points minus projections of the position, px
  bool exists = false;   ///< false if the rays do not meet in front of both cameras
};

/// Signed distance of the right point from the epipolar line of the left one.
struct EpipolarDistance {
  double px;              ///< px of the right image
  PixelSigmas by_pixels;  ///< derivative by the image points
};

/// (x, y) / z and its derivative by the position.
struct Projection {
  Vector2 point;
  SmallMatrix<2, 3> slope;

  DIC_HOST_DEVICE explicit Projection(const Vector3& p) : point(vector2(p[0] / p[2], p[1] / p[2])) {
    const double inverse = 1 / p[2];
    slope = {{{inverse, 0, -point[0] * inverse}, {0, inverse, -point[1] * inverse}}};
  }
};

/// A pair of cameras; a position P in the axes of the left one is at rotation P + translation in those of the
/// right one.
struct CameraPair {
  LensTerms left, right;
  Matrix3 rotation, essential;
  Vector3 translation;

  /// The position whose projections are closest to both points, in units of their standard deviations.
  /// sigmas: of (left x, left y, right x, right y), px; 0 = exact.
  DIC_HOST_DEVICE Meeting meet(const Sight& from_left, const Sight& from_right, PixelSigmas sigmas) const {
    // An exact point counts as one with this standard deviation, in those of the others.
    constexpr double kExact = 1e-4;
    constexpr int kSteps = 3;            // the start is nearly right: each step squares its error
    constexpr double kExactStep = 1e-6;  // relative: its square is below the rounding
    Meeting out;
    double largest = 1e-6;
    for (int k = 0; k < 4; ++k) largest = std::fmax(largest, sigmas[k]);
    PixelSigmas weights;
    for (int k = 0; k < 4; ++k) weights[k] = 1 / std::fmax(sigmas[k], largest * kExact);
    const Matrix2 left_px = inverse(from_left.from_px), right_px = inverse(from_right.from_px);
    const Vector3 along = from_left.direction();
    Vector3 p = first_depth(rotation * along, from_right.direction()) * along;
    bool is_exact = false;
    for (int step = 0; step <= kSteps; ++step) {
      const Vector3 in_right = rotation * p + translation;
      if (!(p[2] > 0 && in_right[2] > 0)) return out;
      const Projection l(p), r(in_right);
      const Vector2 of_left = left_px * (vector2(from_left.a, from_left.b) - l.point),
                    of_right = right_px * (vector2(from_right.a, from_right.b) - r.point);
      const SmallMatrix<2, 3> left_slope = left_px * l.slope, right_slope = right_px * (r.slope * rotation);
      SmallMatrix<4, 3> slope;
      for (int k = 0; k < 2; ++k) {
        out.residual[k] = of_left[k], out.residual[k + 2] = of_right[k];
        for (int j = 0; j < 3; ++j) {
          slope(k, j) = weights[k] * left_slope(k, j);
          slope(k + 2, j) = weights[k + 2] * right_slope(k, j);
        }
      }
      SmallMatrix<3, 4> weighted = slope.transposed();
      const Cholesky<3> normal(weighted * slope);
      for (int j = 0; j < 3; ++j)
        for (int k = 0; k < 4; ++k) weighted(j, k) *= weights[k];
      if (is_exact || step == kSteps) {
        out.from_px = normal.solve(weighted);
        break;
      }
      const Vector3 change = normal.solve(weighted * out.residual);
      p = p + change;
      is_exact = dot(change, change) < kExactStep * kExactStep * dot(p, p);
    }
    out.position = p;
    out.exists = p.is_finite() && out.from_px.is_finite();
    return out;
  }

  DIC_HOST_DEVICE EpipolarDistance epipolar(const Sight& from_left, const Sight& from_right) const {
    const Vector3 line = essential * from_left.direction();
    const Vector3 back = essential.transposed() * from_right.direction();
    const Vector2 by_right = from_right.from_px.transposed() * vector2(line[0], line[1]);
    const Vector2 by_left = from_left.from_px.transposed() * vector2(back[0], back[1]);
    const double length = norm(by_right);
    return {dot(line, from_right.direction()) / length,
            {{{by_left[0] / length}, {by_left[1] / length}, {by_right[0] / length}, {by_right[1] / length}}}};
  }

 private:
  /// Depth along the left ray at which it is nearest to the right ray, for a start.
  DIC_HOST_DEVICE double first_depth(const Vector3& left_in_right, const Vector3& from_right) const {
    const Vector3 across = cross(from_right, left_in_right);
    return -dot(across, cross(from_right, translation)) / dot(across, across);
  }
};

}  // namespace dic::stereo
