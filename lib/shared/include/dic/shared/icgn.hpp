#pragma once

#include <algorithm>
#include <cmath>
#include <dic/shared/host_device.hpp>
#include <dic/shared/refine_options.hpp>
#include <dic/shared/shape.hpp>

/// Rules of the refinement that the CPU and the CUDA backend share.
namespace dic::icgn {

/// A warped pixel may lie this far outside the current image's pixel centres: the outermost pixel's own
/// area.
constexpr double border = 0.5;
/// A subset whose grey values vary less than this (standard deviation, of the largest value in the subset's
/// neighbourhood of 0..255; scaled for 16 bit by the data itself) carries no pattern: rounding noise only.
constexpr double flat_sd = 1e-3;
/// Nor does one that a noise of 1/255 of the largest grey value would displace by more than this, px
/// (standard deviation): an edge with next to nothing along it.
constexpr double largest_unit_sigma = 0.5;
/// Limits of the Gauss-Newton matrix scaled to a unit diagonal: beyond them a direction is missing.
constexpr double least_pivot = 1e-12, largest_inverse = 1e6;
/// A current subset with less than this share of the reference's energy shows nothing but rounding errors.
constexpr double least_energy = 1e-5;
/// A step that shrinks areas below this share runs away.
constexpr double least_jacobian = 0.05;
/// Sums of so many iterations may be float. Points that take more converge slowly: rounding errors of floats,
/// which differ between processors, would decide how many more, and whether they are lost.
constexpr int float_iterations = 8;
/// Longest over-relaxation: noise takes at most this share of the Gauss-Newton matrix.
constexpr double most_noise = 0.3;

/// Noise gain of a spline's derivative at its knots: mean of |frequency response|^2.
constexpr double gradient_noise_gain(Interpolation interpolation) {
  return interpolation == Interpolation::cubic ? 1.392 : 1.894;
}

/// The noise of the reference is in both factors of the Gauss-Newton matrix, but not in its product with the
/// current image: steps come out too short by the noise's share, which 1 - zncc tells as soon as the
/// displacement has no part in it. Longer steps save one to two iterations of about five and change no
/// optimum. noise_share: for each unit of 1 - zncc; misfit: what the step leaves of 1 - zncc.
template <typename T>
DIC_HOST_DEVICE T relaxation(T noise_share, T misfit) {
  const T share = noise_share * misfit, most = static_cast<T>(most_noise);
  return 1 / (1 - (share > 0 ? share < most ? share : most : T{0}));
}

/// What a Gauss-Newton step leaves of 1 - zncc, as far as grey values are linear in displacements. descent:
/// product of the step with the right side that it solves, both in the contrast of the reference; energy: of
/// the reference.
template <typename T>
DIC_HOST_DEVICE T misfit_after(T zncc, T descent, T energy) {
  return 1 - zncc - descent / (2 * energy);
}

/// The step, px, below which an iteration, counted from 1, is the last. Where there are no more, ten times
/// the tolerance will do: what is left moves such points, which converge slowly, less than noise does. At the
/// tolerance itself, rounding errors would decide which of them are lost.
template <typename T>
DIC_HOST_DEVICE T tolerance_at(int iteration, int max_iterations, T tolerance) {
  return iteration < max_iterations ? tolerance : 10 * tolerance;
}

/// ZNSSD 2 (1 - zncc) spread over the pixels less the parameters, mean and gain that were fitted.
template <typename T>
DIC_HOST_DEVICE T residual_sd(T zncc, T energy, T count, int parameters) {
  using std::sqrt;
  const T freedom = count - static_cast<T>(parameters + 2), least = 1;
  const T znssd = 2 * (1 - zncc);
  return znssd > 0 ? sqrt(znssd * energy / (freedom > least ? freedom : least)) : T{0};
}

/// The shape function's basis in the order of ShapeParameters: factor i^a j^b.
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

/// Monomials i^a j^b, a + b <= degree, in the order 1, i, j, i^2, ij, j^2, i^3, ...
DIC_HOST_DEVICE constexpr int monomial_count(int degree) { return (degree + 1) * (degree + 2) / 2; }
DIC_HOST_DEVICE constexpr int monomial_index(int a, int b) { return (a + b) * (a + b + 1) / 2 + b; }

/// A curved edge of a w x h subset bulges beyond its corners by at most this, px.
template <typename T, int kDegree>
DIC_HOST_DEVICE T bulge(const Polynomial<T, kDegree>& p, T w, T h) {
  using std::abs;
  if constexpr (kDegree == 1) return 0;
  return T{0.25} * (abs(p.xx) * w * w + abs(p.yy) * h * h + abs(p.xy) * w * h);
}

}  // namespace dic::icgn
