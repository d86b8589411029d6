#pragma once

#include <cmath>
#include <dic/shared/gradient_noise.hpp>
#include <dic/shared/host_device.hpp>
#include <dic/shared/shape_parameters.hpp>

/// The predicted standard deviation of a displacement, for CPU and GPU. Theory: docs/theory.md, Uncertainty.
namespace dic::track {

/// Factor by which interpolation with a spline changes the variance of white noise, for positions 0 .. 1/2 px
/// from a pixel: the sum of the squared weights of all pixels.
struct NoiseGains {
  static constexpr int kSteps = 32;  ///< the gain is smooth and symmetric
  double gain[kSteps + 1] = {};

  DIC_HOST_DEVICE double at(double displacement) const {
    const double distance = std::abs(displacement - std::nearbyint(displacement));
    const double at = 2 * distance * kSteps;
    const int i = at < kSteps - 1 ? static_cast<int>(at) : kSteps - 1;
    return gain[i] + (at - i) * (gain[i + 1] - gain[i]);
  }
};

/// Standard deviation of the noise of one image, grey levels, from the residual of a refined subset. The
/// residual has all noise of the reference, and that of the current image smoothed by the interpolation.
DIC_HOST_DEVICE inline double noise_from_residual(const NoiseGains& gains, const ShapeParameters& shape,
                                                  float residual_sd, int radius) {
  double gain = 0;
  for (int j = -1; j <= 1; ++j)
    for (int i = -1; i <= 1; ++i) {
      const double dx = 0.67 * radius * i, dy = 0.67 * radius * j;
      gain += gains.at(shape.u_at(dx, dy)) * gains.at(shape.v_at(dx, dy));
    }
  return residual_sd / std::sqrt(1 + gain / 9);
}

/// What is known of the noise of the images before a point is looked at.
struct NoiseModel {
  NoiseGains gains;
  int radius = 0;  ///< of the subsets
  double given =
      -1;            ///< grey levels, by the user; -1: it is estimated, for every point from its own residual
  double least = 0;  ///< that the rounding to whole grey levels alone makes
  double most_share = 0;  ///< of noise in the Gauss-Newton matrix

  /// Standard deviation of the noise of one image around a refined point, grey levels.
  DIC_HOST_DEVICE double around(const ShapeParameters& shape, float residual_sd) const {
    if (given >= 0) return given;
    const double found = noise_from_residual(gains, shape, residual_sd, radius);
    return found > least ? found : least;
  }
};

/// A displacement is never known better than this, px: where iterations stop.
inline constexpr double kLeastSigma = 1e-4;
/// A displacement that is less certain, px, is not ok: four times as much is half a pixel.
inline constexpr float kLargestSigma = 0.125f;

/// Covariance matrix of a displacement, px^2.
struct Covariance {
  double uu = 0, uv = 0, vv = 0;

  DIC_HOST_DEVICE double determinant() const { return uu * vv - uv * uv; }
  DIC_HOST_DEVICE Covariance inverse() const {
    const double scale = 1 / determinant();
    return {scale * vv, -scale * uv, scale * uu};
  }
  /// This times `inner` times this.
  DIC_HOST_DEVICE Covariance around(const Covariance& inner) const {
    const double a = uu * inner.uu + uv * inner.uv, b = uu * inner.uv + uv * inner.vv;
    const double c = uv * inner.uu + vv * inner.uv, d = uv * inner.uv + vv * inner.vv;
    return {a * uu + b * uv, a * uv + b * vv, c * uv + d * vv};
  }
  /// Of what a linear map with the gradient of the displacement, F = 1 + gradient, makes of it.
  DIC_HOST_DEVICE Covariance mapped_by(const ShapeParameters& s) const {
    const double a = 1 + s.ux, b = s.uy, c = s.vx, d = 1 + s.vy;
    return {a * a * uu + 2 * a * b * uv + b * b * vv, a * c * uu + (a * d + b * c) * uv + b * d * vv,
            c * c * uu + 2 * c * d * uv + d * d * vv};
  }
};

DIC_HOST_DEVICE inline Covariance operator+(const Covariance& a, const Covariance& b) {
  return {a.uu + b.uu, a.uv + b.uv, a.vv + b.vv};
}
DIC_HOST_DEVICE inline Covariance operator*(double s, const Covariance& a) {
  return {s * a.uu, s * a.uv, s * a.vv};
}

/// The largest share that `part` has of the inverse of `inverse`, of all directions.
DIC_HOST_DEVICE inline double largest_share(const Covariance& part, const Covariance& inverse) {
  const double half = 0.5 * (part.uu * inverse.uu + 2 * part.uv * inverse.uv + part.vv * inverse.vv);
  const double product = part.determinant() * inverse.determinant(), root = half * half - product;
  return half + std::sqrt(root > 0 ? root : 0.0);
}

/// Covariance of a displacement by the noise of two images.
struct NoiseCovariance {
  Covariance of_images;     ///< their noise on the gradients of the pattern
  Covariance of_gradients;  ///< the noise of the current image on that of the gradients
};

/// noise: of each image, grey levels. shape: of the point.
///
/// The matrix H of a noisy reference has the noise of its gradients, t, on top of the true matrix H - t; the
/// product with the current image has not. The estimate (H - t)^-1 sum D (n_f - n_g) has both noises on the
/// true gradient, and that of the current image on the noise of the gradient, too. A subset that is stretched
/// to an area of 1 / density has more pixels of the current image, and less of their noise. What was found is
/// a position in the reference: the deformation maps its error into the current image. Infinite where more
/// than a share of most_share of H is noise.
template <typename Refined>
DIC_HOST_DEVICE NoiseCovariance noise_covariance(const Refined& point, const ShapeParameters& shape,
                                                 double noise, double most_share) {
  const double su = point.unit_sigma_u, sv = point.unit_sigma_v, variance = noise * noise;
  const Covariance unit{0.5 * su * su, 0.5 * point.unit_covariance, 0.5 * sv * sv};
  const Covariance matrix = unit.inverse();
  const GradientNoise& g = point.gradient_noise;
  const Covariance in_matrix = variance * matrix.around({g.uu, g.uv, g.vv});
  if (!(largest_share(in_matrix, unit) <= most_share)) return {{HUGE_VAL, 0, HUGE_VAL}, {}};
  const Covariance left = (matrix + -1.0 * in_matrix).inverse();
  const double density = 1 / std::abs((1 + shape.ux) * (1 + shape.vy) - shape.uy * shape.vx);
  return {(variance * (1 + density) * left).mapped_by(shape),
          (variance * left.around(in_matrix)).mapped_by(shape)};
}

/// Covariance after a further step, from an image that was measured to a later one. The noise of the image
/// between the steps displaces the point in both, to opposite sides: only that of the first image and the
/// last remains, that of the gradients (by measurement 1.5 times what one step has), and that of the pixels
/// that only one of the two subsets has, because their centres are whole pixels.
DIC_HOST_DEVICE inline Covariance after_step(const Covariance& before, const ShapeParameters& shape,
                                             const NoiseCovariance& step, int radius) {
  const double in_one_subset = 0.67 / (2 * radius + 1);
  const Covariance moved = before.mapped_by(shape),
                   rest = 1.5 * step.of_gradients + in_one_subset * step.of_images;
  return {std::fmax(moved.uu, step.of_images.uu) + rest.uu, 0,
          std::fmax(moved.vv, step.of_images.vv) + rest.vv};
}

}  // namespace dic::track
