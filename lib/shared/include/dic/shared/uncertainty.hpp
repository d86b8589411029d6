#pragma once

#include <cmath>
#include <dic/shared/gradient_noise.hpp>
#include <dic/shared/host_device.hpp>
#include <dic/shared/shape_parameters.hpp>

/// The predicted standard deviation of a displacement, for CPU and GPU. The theory is in docs/theory.md,
/// "Uncertainty".
namespace dic::track {

/// Factor by which spline interpolation changes the variance of white noise, at positions 0 .. 1/2 px from a
/// pixel: the sum of the squared weights of all pixels. Computed in float, because GPUs are several times
/// faster with it.
struct NoiseGains {
  static constexpr int kSteps = 32;  ///< the gain is smooth and symmetric
  float gain[kSteps + 1] = {};

  /// Gain along one axis. displacement: without its whole pixels, so that a float is precise enough.
  DIC_HOST_DEVICE float at(float displacement) const {
    const float distance = std::abs(displacement - std::nearbyint(displacement));
    const float at = 2 * distance * kSteps;
    const int i = at < kSteps - 1 ? static_cast<int>(at) : kSteps - 1;
    return gain[i] + (at - static_cast<float>(i)) * (gain[i + 1] - gain[i]);
  }
  /// Mean gain over all positions, from four of them, which is exact for three harmonics.
  DIC_HOST_DEVICE float mean() const { return 0.25F * (gain[0] + 2 * gain[kSteps / 2] + gain[kSteps]); }
};

/// A value for u and one for v.
struct Components {
  float u = 0, v = 0;
};
DIC_HOST_DEVICE inline Components components(double u, double v) {
  return {static_cast<float>(u), static_cast<float>(v)};
}

/// Remaining amplitude of a wave with a period of one pixel of displacement, averaged over a subset with
/// these slopes of the displacement: sin(pi x) / (pi x) along each side, x = side * slope, and 0 after the
/// first zero. Whole parts of a slope do not count, because pixels are at whole numbers.
DIC_HOST_DEVICE inline float wave_left(double slope_x, double slope_y, int radius) {
  const auto along = [radius](double slope) {
    const auto x = static_cast<float>((2 * radius + 1) * (slope - std::nearbyint(slope)));
    const float square = x * x;
    return square < 1 ? (1 - square) * (1 - square * (0.645F - 0.145F * square)) : 0;  // to 0.002
  };
  return along(slope_x) * along(slope_y);
}
DIC_HOST_DEVICE inline Components wave_left(const ShapeParameters& shape, int radius) {
  return {wave_left(shape.ux, shape.uy, radius), wave_left(shape.vx, shape.vy, radius)};
}

/// Factor of the current image's noise variance after interpolation, averaged over a subset.
DIC_HOST_DEVICE inline float mean_gain(const NoiseGains& gains, const ShapeParameters& shape, int radius) {
  const float mean = gains.mean();
  const auto along = [&](double displacement, float left) {
    const auto fraction = static_cast<float>(displacement - std::nearbyint(displacement));
    return mean + left * (gains.at(fraction) - mean);
  };
  const Components left = wave_left(shape, radius);
  return along(shape.u, left.u) * along(shape.v, left.v);
}

/// Standard deviation of the noise of one image, grey levels, from the residual of a refined subset. The
/// residual contains the noise of the reference, and that of the current image as smoothed by the
/// interpolation.
DIC_HOST_DEVICE inline float noise_from_residual(const NoiseGains& gains, const ShapeParameters& shape,
                                                 float residual_sd, int radius) {
  return residual_sd / std::sqrt(1 + mean_gain(gains, shape, radius));
}

/// Ratios of the noise of an image that may have been low-pass filtered to that of an unfiltered image.
struct NoiseShare {
  float left = 1;    ///< ratio of the noise variance
  float effect = 1;  ///< ratio of the variance of a displacement by this noise
};

/// The noise of the images, as known before considering a point.
struct NoiseModel {
  NoiseGains gains;
  int reach = 1;          ///< see bend_reach
  int order = 0;          ///< order of the shape function; also 0 if bends do not count
  int radius = 0;         ///< radius of the subsets, px
  float mean_square = 0;  ///< see mean_square_distance; 0: bending does not count
  /// Noise given by the user, grey levels; -1: estimated for every point from its residual.
  float given = -1;
  float least = 0;                      ///< noise by the rounding to whole grey levels alone, grey levels
  float reference = 0, current = 0;     ///< noise of each image, estimated from that image alone, grey levels
  NoiseShare of_reference, of_current;  ///< shares of an image that was made as blurred as the other
  int width = 1 << 24, height = 1 << 24;  ///< size of the images, px; very large if unknown
  float bias_u = 0, bias_v = 0;           ///< largest bias by the interpolation, px
  /// Mean squared gradient, grey levels^2 per px^2, of a reference whose edges are sharper than its pixels;
  /// 0: no such edges.
  float edge_gradient = 0;
  float lines_u = 0, lines_v = 0;      ///< variance by displaced rows and columns, px^2
  float pattern_u = 0, pattern_v = 0;  ///< variance of a camera's pattern of columns and rows, grey levels^2
  /// False if the images may differ in focus: a large residual is then no noise that a camera's filter
  /// correlates.
  bool same_focus = true;
  float most_share = 0;  ///< largest accepted share of noise in the Gauss-Newton matrix
  float correlated = 1;  ///< RefineOptions::smooth_noise_factor
  float inflation = 1;   ///< factor of a displacement's variance by the other shape parameters
};

/// The noise that makes the displacement of a refined point uncertain.
struct LocalNoise {
  float images;  ///< white noise of each image with the same effect on the displacement as the actual noise,
                 ///< grey levels
  float reference;  ///< noise of the reference alone, grey levels
  float misfit;     ///< factor by which misfits make the standard deviation larger
  /// Variance of noise with the same effect on the displacement as sharp edges, grey levels^2.
  float edges_u = 0, edges_v = 0;
};

/// Ratio of actual to expected variance of the residuals up to which there is no misfit, because the noise
/// varies within an image.
inline constexpr float kNormalVariance = 1.1F;
/// This ratio for a single subset, where the variance of white noise in n pixels also varies by sqrt(2 / n).
DIC_HOST_DEVICE inline float normal_variance(int radius) {
  const float pixels = (2.0F * radius + 1) * (2.0F * radius + 1);
  return kNormalVariance * (1 + 2 * std::sqrt(2 / pixels));
}

/// Relative slope of the current image's grey values, estimated from a misfit, which is 1 - zncc of images
/// without noise. A blur lowers the zncc and the slope by related amounts, for a Gaussian blur of a speckle
/// with a Gaussian spectrum.
DIC_HOST_DEVICE inline float slope_after(float misfit) {
  const float zncc = 1 - misfit;
  return zncc * (1 - std::sqrt(1 - zncc * zncc));
}

/// Square of the standard deviation of the pattern's blobs, in sides of the subset, from contrast and
/// gradients.
template <typename Refined>
DIC_HOST_DEVICE float squared_blob(const Refined& point, const NoiseModel& model) {
  const float residual = point.residual_sd, su = point.unit_sigma_u, sv = point.unit_sigma_v;
  const float variance = 0.5F * residual * residual / (1 - point.zncc);  // of the pattern
  return variance * (su * su + sv * sv) / (8 * model.inflation);
}

/// Factor by which few blobs in a subset make the variance of a displacement larger than to first order:
/// noise makes the other shape parameters so uncertain that they add to the error. Fitted to measurements
/// with blobs of 1.7 to 3.5 px in subsets of 9 to 33 px.
template <typename Refined>
DIC_HOST_DEVICE float few_blobs(const Refined& point, float variance, const NoiseModel& model) {
  if (model.order == 0 || !(1 - point.zncc > 1e-5F)) return 1;
  return 1 + 45 * std::sqrt(variance) * std::fmin(squared_blob(point, model), 0.25F);
}

/// Factor of the displacement variance of a misfit over that of noise with the same variance: a misfit varies
/// over the size of a blob, not from pixel to pixel. It cancels inside the subset; the rest grows with the
/// ratio of blob to subset. The constant was measured with blurs.
/// square: see squared_blob.
DIC_HOST_DEVICE inline float misfit_weight(float square, const NoiseModel& model) {
  const float subset = 2 * model.radius + 1;
  const float weight = 6.7F * subset * subset * square * std::sqrt(square);
  return std::fmin(std::fmax(weight, 1.0F), 16.0F);
}

/// This factor for noise that a camera's filter has correlated, of which the fourth differences of an image
/// see little. excess: variance of the residual over what they expect; up to 3, a change of the light may
/// explain it. For a Gaussian low-pass, the power at low frequencies and the square of its width, px^2,
/// follow from the logarithm; gradients of blobs much larger than the filter meet all of this power.
DIC_HOST_DEVICE inline float correlation_weight(float square, float excess, const NoiseModel& model) {
  const float subset = 2 * model.radius + 1, blob = subset * subset * square, log = std::log(excess);
  const float counts = std::fmin(std::fmax(2 * log - 2, 0.0F), log);
  const float part = blob / (blob + 0.125F * counts);
  return (1 + 1.25F * counts) * part * part;
}

/// Residual of a spline at edges that are sharper than the pixels, grey levels^2.
struct EdgeResidual {
  float variance = 0;   ///< part of the residual's variance
  float in_images = 0;  ///< part that looks like noise in each image
  float u = 0, v = 0;   ///< see LocalNoise::edges_u
};

/// Effect of edges that are sharper than the pixels. In one image they look like noise of variance e: with
/// noise n, fourth differences see n^2 + e. Between pixels, a spline misses them by 0.45 e (sin^2 pi u +
/// sin^2 pi v), so that the residual has n^2 (1 + gain) plus this; both equations give n and e. Most of it is
/// near the highest frequency, where gradients are small: it displaces less than noise, but more if the
/// subset has few edges. The factors were measured with printed dots. e is proportional to the squared
/// gradients in the subset.
template <typename Refined>
DIC_HOST_DEVICE EdgeResidual edge_residual(const Refined& point, const ShapeParameters& shape, float gain,
                                           const NoiseModel& model) {
  const auto missed = [](double x, float left) {
    const auto t = static_cast<float>(std::abs(x - std::nearbyint(x)));
    const float parabola = 4 * t * (1 - t);
    const float sine = parabola * (0.775F + 0.225F * parabola);  // sin(pi x), to 0.001
    return 0.5F + left * (sine * sine - 0.5F);                   // sin^2 = (1 - cos 2 pi x) / 2
  };
  const Components left_of_wave = wave_left(shape, model.radius);
  const float u = missed(shape.u, left_of_wave.u), v = missed(shape.v, left_of_wave.v);
  const float su = point.unit_sigma_u, sv = point.unit_sigma_v, subset = 2 * model.radius + 1;
  const float gradient = 8 * model.inflation / (subset * subset * (su * su + sv * sv));
  const float denser = gradient / model.edge_gradient, left = 0.45F * (u + v) * denser;
  const float residual = float{point.residual_sd} * point.residual_sd;
  const float seen = 0.5F * (model.reference * model.reference + model.current * model.current);
  const float most = 0.95F * seen;
  const float edges = 1 + gain > left ? (seen * (1 + gain) - residual) / (1 + gain - left) : most;
  const float e = std::fmin(std::fmax(edges, 0.0F), most), few = 12 / subset,
              here = e * denser * (1 + few * few);
  return {std::fmin(left * e, 0.95F * residual), e, here * (0.16F * u + 0.06F * v),
          here * (0.06F * u + 0.16F * v)};
}

template <typename Refined>
DIC_HOST_DEVICE LocalNoise noise_around(const Refined& point, const ShapeParameters& shape,
                                        const NoiseModel& model) {
  if (model.given >= 0) return {model.correlated * model.given, model.given, 1};
  const float gain = mean_gain(model.gains, shape, model.radius) * model.of_current.left;
  const float both = model.of_reference.left + gain;
  EdgeResidual edges;
  if (model.edge_gradient > 0) edges = edge_residual(point, shape, gain, model);
  const float residual = float{point.residual_sd} * point.residual_sd;
  const float found = (residual - edges.variance) / both;
  const float least = model.least * model.least, variance = found > least ? found : least;
  const float of_reference = model.reference * model.reference - edges.in_images;
  const float by_images =
      of_reference * model.of_reference.left + gain * (model.current * model.current - edges.in_images);
  LocalNoise noise{model.correlated * std::sqrt(variance), std::sqrt(variance), 1, edges.u, edges.v};
  if (!(by_images > 0)) return noise;  // not known
  const float expected = std::fmax(normal_variance(model.radius) * by_images / both, least);
  noise.reference = std::sqrt(std::fmin(variance, std::fmax(of_reference, 0.0F)));
  if (!(variance > expected)) return noise;
  const float share = 1 - expected / variance, rest = 1 - point.zncc;
  const float square = squared_blob(point, model), excess = variance / expected;
  const float by_filter = model.same_focus ? correlation_weight(square, excess, model) : 1;
  const float weight = std::fmax(misfit_weight(square, model), by_filter);
  noise.images = model.correlated * std::sqrt(expected);
  noise.misfit = std::sqrt(excess * (1 + share * (weight - 1))) / slope_after(share * rest);
  return noise;
}

/// Smallest sigma of a displacement, px: where iterations stop.
inline constexpr float kLeastSigma = 1e-4F;
/// Largest sigma of an `ok` point, px: by noise alone (four times this is half a pixel), and by all causes
/// together. The latter is larger, because the effect of misfits and bends is a rough and mostly too large
/// estimate.
inline constexpr float kLargestNoiseSigma = 0.125F, kLargestSigma = 0.25F;
/// Largest sigma by all causes but noise, px, of a point that needs no confirmation; the largest distance,
/// px, from the plane through the points around it that confirms another one; and the least number of these
/// points. Where two fifths of a texture were replaced in pieces of 5 to 16 px, 1.2 to 6 % of the points with
/// a larger sigma are off by half a pixel, and 0.2 to 0.6 % of those confirmed.
inline constexpr float kLargestOtherSigma = 0.125F, kOnPlaneWithin = 0.2F;
inline constexpr int kLeastAround = 5;
/// Largest sigma by noise, px, of a point that certain neighbours predict within kConfirmedWithin px. Of
/// points that are wrong by half a pixel, neighbours confirm about one in ten.
inline constexpr float kLargestConfirmedSigma = 0.2F, kConfirmedWithin = 0.25F;
/// Largest sigma of a confirming neighbour: relative to that of the point, and in px. Neighbours about as
/// uncertain as the point have the same errors and confirm nothing. Of points confirmed by neighbours of 0.1
/// px, 1 in 1,400 is off by half a pixel (0.125 px: 1 in 300), at contrasts of 15 to 30 grey levels with a
/// noise of 2.
inline constexpr float kMoreCertain = 0.8F, kConfirmingSigma = 0.1F;

/// Covariance matrix of a displacement, px^2.
struct Covariance {
  float uu = 0, uv = 0, vv = 0;

  DIC_HOST_DEVICE float larger() const { return uu > vv ? uu : vv; }
  DIC_HOST_DEVICE float determinant() const { return uu * vv - uv * uv; }
  DIC_HOST_DEVICE Covariance inverse() const {
    const float scale = 1 / determinant();
    return {scale * vv, -scale * uv, scale * uu};
  }
  /// The matrix product this * inner * this.
  DIC_HOST_DEVICE Covariance around(const Covariance& inner) const {
    const float a = uu * inner.uu + uv * inner.uv, b = uu * inner.uv + uv * inner.vv;
    const float c = uv * inner.uu + vv * inner.uv, d = uv * inner.uv + vv * inner.vv;
    return {a * uu + b * uv, a * uv + b * vv, c * uv + d * vv};
  }
  /// Covariance after the linear map F = 1 + gradient of the displacement.
  DIC_HOST_DEVICE Covariance mapped_by(const ShapeParameters& s) const {
    const float a = 1 + s.ux, b = s.uy, c = s.vx, d = 1 + s.vy;
    return {a * a * uu + 2 * a * b * uv + b * b * vv, a * c * uu + (a * d + b * c) * uv + b * d * vv,
            c * c * uu + 2 * c * d * uv + d * d * vv};
  }
};

DIC_HOST_DEVICE inline Covariance operator+(const Covariance& a, const Covariance& b) {
  return {a.uu + b.uu, a.uv + b.uv, a.vv + b.vv};
}
DIC_HOST_DEVICE inline Covariance operator*(float s, const Covariance& a) {
  return {s * a.uu, s * a.uv, s * a.vv};
}

/// Largest share, over all directions, of `part` in the inverse of `inverse`.
DIC_HOST_DEVICE inline float largest_share(const Covariance& part, const Covariance& inverse) {
  const float half = 0.5F * (part.uu * inverse.uu + 2 * part.uv * inverse.uv + part.vv * inverse.vv);
  const float product = part.determinant() * inverse.determinant(), root = half * half - product;
  return half + std::sqrt(root > 0 ? root : 0.0F);
}

/// Covariance of a displacement by the noise of two images.
struct NoiseCovariance {
  Covariance of_images;     ///< covariance by the images' noise on the gradients of the pattern
  Covariance of_gradients;  ///< covariance by the current image's noise on the noise of the gradients
};

/// Covariance of a displacement by noise. The matrix H of a noisy reference is the true matrix H - t plus the
/// noise t of its gradients; the product with the current image does not contain t. The estimate (H - t)^-1
/// sum D (n_f - n_g) combines both noises with the true gradient, and the noise of the current image also
/// with the noise of the gradient. A subset that is stretched to an area of 1 / density covers more pixels of
/// the current image, which reduces their noise. The estimate is a position in the reference; the deformation
/// maps its error into the current image. Infinite if more than most_share of H is noise.
template <typename Refined>
DIC_HOST_DEVICE NoiseCovariance noise_covariance(const Refined& point, const ShapeParameters& shape,
                                                 const LocalNoise& noise, const NoiseModel& model) {
  const float su = point.unit_sigma_u, sv = point.unit_sigma_v;
  const Covariance unit{0.5F * su * su, 0.5F * point.unit_covariance, 0.5F * sv * sv};
  const Covariance matrix = unit.inverse();
  const GradientNoise& g = point.gradient_noise;
  const Covariance in_matrix =
      noise.reference * noise.reference * model.of_reference.left * matrix.around({g.uu, g.uv, g.vv});
  if (!(largest_share(in_matrix, unit) <= model.most_share)) return {{HUGE_VALF, 0, HUGE_VALF}, {}};
  const Covariance left = (matrix + -1.0F * in_matrix).inverse();
  const float density = 1 / std::abs((1 + shape.ux) * (1 + shape.vy) - shape.uy * shape.vx);
  const float variance = noise.images * noise.images, of_current = model.of_current.effect * variance;
  const Covariance first = (model.of_reference.effect * variance + density * of_current) * left;
  const float few = few_blobs(point, first.larger(), model);
  return {(few * first).mapped_by(shape), (few * of_current * left.around(in_matrix)).mapped_by(shape)};
}

/// Covariance after a further step, from a measured image to a later one. The noise of the image between the
/// steps displaces the point in both steps, to opposite sides. What remains is the noise of the first and the
/// last image, that of the gradients (measured: 1.5 times that of one step), and that of pixels in only one
/// of the two subsets, whose centres are whole pixels.
DIC_HOST_DEVICE inline Covariance after_step(const Covariance& before, const ShapeParameters& shape,
                                             const NoiseCovariance& step, int radius) {
  const float in_one_subset = 0.67F / (2 * radius + 1);
  const Covariance moved = before.mapped_by(shape),
                   rest = 1.5F * step.of_gradients + in_one_subset * step.of_images;
  return {std::fmax(moved.uu, step.of_images.uu) + rest.uu, 0,
          std::fmax(moved.vv, step.of_images.vv) + rest.vv};
}

}  // namespace dic::track
