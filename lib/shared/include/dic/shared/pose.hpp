#pragma once

#include <cmath>
#include <dic/shared/host_device.hpp>

/// Rules of the search and refinement of poses of a template, for CPU and GPU.
///
/// Template coordinates (xi, eta) count from the template's centre, px of the template; a warp maps them to
/// the image.
namespace dic::pose {

/// An affine map from template coordinates to image coordinates.
struct Warp {
  double xx = 1, xy = 0, yx = 0, yy = 1;  ///< image x = center_x + xx * xi + xy * eta; y the same with yx, yy
  double center_x = 0, center_y = 0;      ///< image position of the template's centre, px
};

/// The rotation (positive from x towards y) and scale about a centre.
DIC_HOST_DEVICE inline Warp similarity(double center_x, double center_y, double radians, double scale) {
#ifdef __CUDA_ARCH__
  double c, s;  // sin and cos of any angle would need local memory
  sincospi(radians * 0.31830988618379067154, &s, &c);
#else
  double c = std::cos(radians), s = std::sin(radians);
#endif
  c *= scale, s *= scale;
  return {c, -s, s, c, center_x, center_y};
}

/// Angle of the rotation that is nearest to a warp, radians, and the square root of its area ratio.
DIC_HOST_DEVICE inline double rotation_of(const Warp& w) { return std::atan2(w.yx - w.xy, w.xx + w.yy); }
DIC_HOST_DEVICE inline double scale_of(const Warp& w) {
  return std::sqrt(std::abs(w.xx * w.yy - w.xy * w.yx));
}

/// A warp of full-resolution coordinates as one of level `level` of the pyramids, whose pixels cover 2^level
/// pixels.
DIC_HOST_DEVICE inline Warp at_level(Warp w, int level) {
  const double factor = 1.0 / (1 << level), shift = 0.5 * ((1 << level) - 1);
  w.center_x = (w.center_x - shift) * factor;
  w.center_y = (w.center_y - shift) * factor;
  return w;
}
DIC_HOST_DEVICE inline Warp from_level(Warp w, int level) {
  const double factor = 1 << level, shift = 0.5 * ((1 << level) - 1);
  w.center_x = w.center_x * factor + shift;
  w.center_y = w.center_y * factor + shift;
  return w;
}

/// Geometric parameters of a step in template coordinates, in the order of `Terms`: shift in xi and eta, and
/// the four elements of the change of the matrix.
constexpr int kGeometric = 6;
/// Terms of the linear model of one pixel: the image's grey value is
///   gain * (t + gradient . step) + offset.
/// The terms are tx, ty, xi tx, eta tx, xi ty, eta ty, t, 1; a ninth is the image's grey value itself.
constexpr int kTerms = 9;
constexpr int kGain = 6, kOffset = 7, kImage = 8;

/// Sums of products of the terms over all pixels, weighted; upper triangle by rows.
constexpr int kProducts = kTerms * (kTerms + 1) / 2;
DIC_HOST_DEVICE constexpr int product_index(int i, int j) {
  return i <= j ? i * kTerms - i * (i - 1) / 2 + (j - i) : product_index(j, i);
}

/// The motions that are free.
enum class Freedom { shift, rotation, scale, similarity, affine };
DIC_HOST_DEVICE constexpr int parameters(Freedom freedom) {
  return freedom == Freedom::shift        ? 2
         : freedom == Freedom::rotation   ? 3
         : freedom == Freedom::scale      ? 3
         : freedom == Freedom::similarity ? 4
                                          : 6;
}

/// A warp after a step: it is composed with the inverse of the step (inverse compositional algorithm, Baker &
/// Matthews 2004). step: the six geometric parameters.
DIC_HOST_DEVICE inline Warp composed(const Warp& w, const double (&step)[kGeometric]) {
  const double a = 1 + step[2], b = step[3], c = step[4], d = 1 + step[5], one = 1 / (a * d - b * c);
  Warp next;
  next.xx = (w.xx * d - w.xy * c) * one;
  next.xy = (w.xy * a - w.xx * b) * one;
  next.yx = (w.yx * d - w.yy * c) * one;
  next.yy = (w.yy * a - w.yx * b) * one;
  next.center_x = w.center_x - (next.xx * step[0] + next.xy * step[1]);
  next.center_y = w.center_y - (next.yx * step[0] + next.yy * step[1]);
  return next;
}

/// The six geometric parameters of a step of the free ones; rotation and scale exactly, so that a similarity
/// stays one.
DIC_HOST_DEVICE inline void geometric_step(Freedom freedom, const double* free, double (&step)[kGeometric]) {
  step[0] = free[0], step[1] = free[1];
  if (freedom == Freedom::affine) {
    for (int k = 2; k < kGeometric; ++k) step[k] = free[k];
    return;
  }
  const bool rotates = freedom == Freedom::rotation || freedom == Freedom::similarity;
  const double radians = rotates ? free[2] : 0;
  const double log_scale = freedom == Freedom::similarity ? free[3] : freedom == Freedom::scale ? free[2] : 0;
  const Warp change = similarity(0, 0, radians, log_scale == 0 ? 1 : std::exp(log_scale));
  step[2] = change.xx - 1, step[3] = change.xy, step[4] = change.yx, step[5] = change.yy - 1;
}

/// Solves A x = b for several right-hand sides by Cholesky's method, in place: `a` (n x n, lower triangle
/// used) becomes its factor, with the inverse of each diagonal element, since a GPU divides slowly; `b`
/// (columns x n) becomes the solution. False where A is not positive definite.
template <int kMax>
DIC_HOST_DEVICE bool solve(double (&a)[kMax][kMax], int n, double* b, int columns) {
  constexpr double kLeastPivot = 1e-10;
  DIC_UNROLL
  for (int i = 0; i < n; ++i) {
    const double diagonal = a[i][i];
    DIC_UNROLL
    for (int j = 0; j <= i; ++j) {
      double sum = a[i][j];
      DIC_UNROLL
      for (int k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      if (i == j) {
        if (!(sum > kLeastPivot * diagonal)) return false;
        a[i][i] = 1 / std::sqrt(sum);
      } else {
        a[i][j] = sum * a[j][j];
      }
    }
  }
  for (int column = 0; column < columns; ++column, b += n) {
    DIC_UNROLL
    for (int i = 0; i < n; ++i) {
      DIC_UNROLL
      for (int k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
      b[i] *= a[i][i];
    }
    DIC_UNROLL
    for (int i = n - 1; i >= 0; --i) {
      DIC_UNROLL
      for (int k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
      b[i] *= a[i][i];
    }
  }
  return true;
}

/// Number of poses whose neighbours differ by at most `step` (in the units of the range).
inline int pose_count(double range, double step) {
  return range > 0 ? static_cast<int>(std::ceil(range / step)) : 1;
}

}  // namespace dic::pose
