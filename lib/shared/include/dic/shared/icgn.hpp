#pragma once

#include <algorithm>
#include <cmath>
#include <dic/shared/gaussian.hpp>
#include <dic/shared/gradient_noise.hpp>
#include <dic/shared/host_device.hpp>
#include <dic/shared/refine_options.hpp>
#include <dic/shared/shape.hpp>
#include <dic/shared/subset_window.hpp>
#include <numbers>

/// Rules of the inverse-compositional Gauss-Newton refinement, for CPU and GPU.
namespace dic::icgn {

/// Distance, px, by which a displaced pixel may be outside the outermost pixel centres of the current image:
/// up to the edge of these pixels.
constexpr double border = 0.5;
/// Smallest standard deviation of a subset's grey values, relative to the largest value in its neighbourhood
/// (0..255; scaled for 16 bit by the data itself): below it there is no pattern, only rounding noise.
constexpr double flat_sd = 1e-3;
/// Largest standard deviation, px, of a displacement by a noise of 1/255 of the largest grey value: above it,
/// a subset is flat too, for example at an edge without contrast along it.
constexpr double largest_unit_sigma = 0.5;
/// Limits of the Gauss-Newton matrix scaled to a unit diagonal: beyond them it is singular.
constexpr double least_pivot = 1e-12, largest_inverse = 1e6;
/// Smallest energy of a current subset as a fraction of the reference's: below it there are only rounding
/// errors.
constexpr double least_energy = 1e-5;
/// Smallest area ratio of a step: a step that shrinks areas further diverges.
constexpr double least_jacobian = 0.05;
/// Number of first iterations whose sums may be float. Points with more iterations converge slowly: the
/// rounding errors of floats, which differ between processors, would decide their number of iterations and
/// status.
constexpr int float_iterations = 8;
/// Limit of over-relaxation: noise is at most this fraction of the Gauss-Newton matrix.
constexpr double most_noise = 0.3;
/// Safety factors of the predicted convergence: steps may shrink up to convergence_margin times less than the
/// last two steps predict, because fast components hide slow ones, and noise_margin times less than the
/// fraction of noise predicts. Found with synthetic and real images: the remaining error is then at most a
/// third of the tolerance, except for 1 point in 10,000.
constexpr double convergence_margin = 4, noise_margin = 1.5;

/// Frequency response of a spline's derivative at its knots, divided by i; omega in rad per px.
inline double gradient_response(Interpolation interpolation, double omega) {
  if (interpolation == Interpolation::cubic) return 3 * std::sin(omega) / (2 + std::cos(omega));
  return (50 * std::sin(omega) + 5 * std::sin(2 * omega)) / (33 + 26 * std::cos(omega) + std::cos(2 * omega));
}

/// Ratio of the variance of a spline's derivative at its knots to that of the image, for noise that was white
/// before a Gaussian low-pass of this standard deviation (px; 0 = none): the quotient of means over all
/// frequencies.
inline double gradient_noise_gain(Interpolation interpolation, double smoothing) {
  constexpr int frequencies = 256;
  const std::vector<double> taps = gaussian_taps(smoothing);
  double of_gradient = 0, of_image = 0;
  for (int k = 0; k < frequencies; ++k) {
    const double omega = 2 * std::numbers::pi * k / frequencies;
    const double low_pass = response_of(taps, omega), gradient = gradient_response(interpolation, omega);
    of_image += low_pass * low_pass;
    of_gradient += low_pass * low_pass * gradient * gradient;
  }
  return of_gradient / of_image;
}

/// Fraction of noise in the Gauss-Newton matrix. noise_share: this fraction per unit of 1 - zncc, which
/// measures noise once the displacement is found; misfit: 1 - zncc after the step.
template <typename T>
DIC_HOST_DEVICE T noise_fraction(T noise_share, T misfit) {
  const T share = noise_share * misfit, most = static_cast<T>(most_noise);
  return share > 0 ? share < most ? share : most : T{0};
}

/// Factor by which a Gauss-Newton step is made longer. The noise of the reference is in both factors of the
/// Gauss-Newton matrix, but not in its product with the current image: steps are too short by the fraction of
/// noise in the matrix. Longer steps save one to two of about five iterations and do not change the optimum.
template <typename T>
DIC_HOST_DEVICE T relaxation(T noise_fraction) {
  return 1 / (1 - noise_fraction);
}

/// Predicted 1 - zncc after a Gauss-Newton step, for grey values that are linear in displacements. descent:
/// product of the step with the right-hand side of its equation, both in the contrast of the reference;
/// energy: energy of the reference.
template <typename T>
DIC_HOST_DEVICE T misfit_after(T zncc, T descent, T energy) {
  return 1 - zncc - descent / (2 * energy);
}

/// Largest accepted remaining step, px, after an iteration, counted from 1. In the last allowed iteration,
/// ten times the tolerance is enough, because the remaining error is smaller than that of noise. With the
/// tolerance itself, rounding errors would decide which slow points are lost.
template <typename T>
DIC_HOST_DEVICE T tolerance_at(int iteration, int max_iterations, T tolerance) {
  return iteration < max_iterations ? tolerance : 10 * tolerance;
}

/// True if this step is the last one, because the predicted next step, about the remaining error, is below
/// the tolerance. Steps shrink by a nearly constant factor: the ratio of the last two or, if the first step
/// shrank by more, the fraction of noise in the matrix. step: px; before: step of the previous iteration, px,
/// 0 = none; tolerance: see tolerance_at.
template <typename T>
DIC_HOST_DEVICE bool is_last_step(T step, T before, T noise_fraction, T tolerance) {
  constexpr T by_steps = static_cast<T>(convergence_margin), by_noise = static_cast<T>(noise_margin);
  return step < tolerance || (by_steps * step < before && by_steps * step * step < tolerance * before &&
                              by_noise * step * noise_fraction < tolerance);
}

/// Factor of the tolerance up to which steps that shrink steadily may still become small enough: the last
/// ones may shrink faster.
constexpr double stuck_margin = 10;
/// Iterations after which is_stuck is asked, of the allowed ones. Parts of subsets have good starts, or wrong
/// ones; whole subsets may come from far.
DIC_HOST_DEVICE constexpr int patience(int max_iterations, bool is_part) {
  return is_part ? (max_iterations + 1) / 3 : max_iterations / 2;
}

/// True if a refinement is given up after this iteration, because its steps shrink too slowly to end within
/// `max_iterations`, if each shrinks by the same factor as the last one. step, before: see is_last_step;
/// tolerance: that of the first iterations, px.
template <typename T>
DIC_HOST_DEVICE bool is_stuck(int iteration, int max_iterations, T step, T before, T tolerance) {
  if (!(before > 0)) return false;
  const T most = static_cast<T>(stuck_margin) * tolerance_at(max_iterations, max_iterations, tolerance);
  const T ratio = step < before ? step / before : T{1};
  for (int k = iteration; k < max_iterations && step > most && ratio < 1; ++k) step *= ratio;
  return step > most;
}

/// Number of degrees of freedom taken by the fit of the shape parameters, mean and gain.
DIC_HOST_DEVICE constexpr int fitted_parameters(int parameters) { return parameters + 2; }

/// Standard deviation of the residuals, from ZNSSD = 2 (1 - zncc). count: sum of the weights; fitted: degrees
/// of freedom that the fit takes from it.
template <typename T>
DIC_HOST_DEVICE T residual_sd(T zncc, T energy, T count, T fitted) {
  using std::sqrt;
  const T freedom = count - fitted, least = 1;
  const T znssd = 2 * (1 - zncc);
  return znssd > 0 ? sqrt(znssd * energy / (freedom > least ? freedom : least)) : T{0};
}

/// True if a refinement whose residual must become as small as `most`, grey levels, is given up after this
/// iteration: a good start has come near by then.
DIC_HOST_DEVICE inline bool is_hopeless(int iteration, float residual, float most) {
  return iteration >= 4 && residual > 2 * most;
}

/// Basis functions of the shape function in the order of ShapeParameters: factor i^a j^b.
struct Monomial {
  int a, b;
  double factor;
};
DIC_HOST_DEVICE constexpr Monomial basis(int k) {
  return Monomial{k == 1 || k == 4 ? 1
                  : k == 3         ? 2
                                   : 0,
                  k == 2 || k == 4 ? 1
                  : k == 5         ? 2
                                   : 0,
                  k == 3 || k == 5 ? 0.5 : 1.0};
}

/// Means of i^0 .. i^4 over the pixels first .. last.
template <typename T>
struct PixelMoments {
  T mean[5];

  /// Means with equal weights, by integrals; exact up to 1 / n^2 of the means.

  DIC_HOST_DEVICE PixelMoments(T first, T last) {
    const T low = first - T(0.5), high = last + T(0.5), scale = 1 / (high - low);
    T below = low, above = high;
    DIC_UNROLL
    for (int a = 0; a < 5; ++a) {
      mean[a] = scale * (above - below) / static_cast<T>(a + 1);
      below *= low;
      above *= high;
    }
  }

  /// Means weighted by the squared weights of a subset.
  DIC_HOST_DEVICE PixelMoments(int first, int last, SubsetWeights weights, int subset) : mean{} {
    for (int i = first; i <= last; ++i) {
      const T weight = window_weight<T>(weights, static_cast<T>(i), subset);
      T value = weight * weight;
      DIC_UNROLL
      for (int a = 0; a < 5; ++a) {
        mean[a] += value;
        value *= static_cast<T>(i);
      }
    }
    for (int a = 4; a >= 0; --a) mean[a] /= mean[0];
  }
};

/// Effect of the gradients' noise on the displacement (see GradientNoise). of_u, of_v: columns of H^-1 (N
/// parameters, first those of u, then of v; see basis()) that belong to u and v. x, y: moments of the
/// subset's rectangle. factor: squared gradient that a noise of 1 makes in all pixels together, with squared
/// weights.
template <int N, typename T>
DIC_HOST_DEVICE GradientNoise gradient_noise(const T (&of_u)[N], const T (&of_v)[N], const PixelMoments<T>& x,
                                             const PixelMoments<T>& y, T factor) {
  constexpr int terms = N / 2;
  T uu = 0, uv = 0, vv = 0;
  DIC_UNROLL
  for (int k = 0; k < terms; ++k) {
    const Monomial p = basis(k);
    DIC_UNROLL
    for (int l = k; l < terms; ++l) {
      const Monomial q = basis(l);
      const T both = l > k ? T(2) : T(1);
      const T product = both * static_cast<T>(p.factor * q.factor) * x.mean[p.a + q.a] * y.mean[p.b + q.b];
      DIC_UNROLL
      for (int part = 0; part < N; part += terms) {
        const T u = of_u[part + k], v = of_v[part + k];
        uu += product * u * of_u[part + l];
        uv += product * T(0.5) * (u * of_v[part + l] + v * of_u[part + l]);
        vv += product * v * of_v[part + l];
      }
    }
  }
  return {static_cast<float>(factor * uu), static_cast<float>(factor * uv), static_cast<float>(factor * vv)};
}

/// Monomials i^a j^b, a + b <= degree, in the order 1, i, j, i^2, ij, j^2, i^3, ...
DIC_HOST_DEVICE constexpr int monomial_count(int degree) { return (degree + 1) * (degree + 2) / 2; }
DIC_HOST_DEVICE constexpr int monomial_index(int a, int b) { return (a + b) * (a + b + 1) / 2 + b; }

/// Upper bound of the distance, px, by which a curved edge of a w x h subset extends beyond its corners.
template <typename T, int kDegree>
DIC_HOST_DEVICE T bulge(const Polynomial<T, kDegree>& p, T w, T h) {
  using std::abs;
  if constexpr (kDegree == 1) return 0;
  return T{0.25} * (abs(p.xx) * w * w + abs(p.yy) * h * h + abs(p.xy) * w * h);
}

}  // namespace dic::icgn
