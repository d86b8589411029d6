#pragma once

#include <utility>

#include "common/host_device.hpp"

/// Discrete Fourier transforms of a few numbers that one thread holds in registers.
namespace dic::kernels {

struct alignas(8) Complex {  // aligned, for one load and one store
  float re, im;
};

DIC_HOST_DEVICE constexpr Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
DIC_HOST_DEVICE constexpr Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
DIC_HOST_DEVICE constexpr Complex operator*(float a, Complex b) { return {a * b.re, a * b.im}; }
DIC_HOST_DEVICE constexpr Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
DIC_HOST_DEVICE constexpr Complex conj(Complex a) { return {a.re, -a.im}; }

struct CosineSine {
  double cosine, sine;
};
/// Cosine and sine of the angle 2 pi numerator / denominator, at compile time.
DIC_HOST_DEVICE constexpr CosineSine cosine_sine(int numerator, int denominator) {
  constexpr double two_pi = 6.283185307179586476925;
  int eighths = 8 * numerator;  // eighths of a circle, in units of 1 / denominator
  const int circle = 8 * denominator;
  eighths = (eighths % circle + circle) % circle;
  const int quadrant =
      (eighths + denominator) / (2 * denominator);  // the remaining angle is within 1/8 circle
  const double x = two_pi * (eighths - 2 * quadrant * denominator) / circle;
  double cosine = 0, sine = 0, term = 1;
  for (int k = 0; k < 24; ++k) {
    (k % 2 == 0 ? cosine : sine) += k % 4 < 2 ? term : -term;
    term *= x / (k + 1);
  }
  switch (quadrant % 4) {
    case 0:
      return {cosine, sine};
    case 1:
      return {-sine, cosine};
    case 2:
      return {-cosine, -sine};
    default:
      return {sine, -cosine};
  }
}

enum class Direction { forward, inverse };

/// exp(-+ 2 pi i numerator / denominator): the sign of the exponent is that of the transform.
template <Direction direction>
DIC_HOST_DEVICE constexpr Complex root(int numerator, int denominator) {
  const auto [cosine, sine] =
      cosine_sine(direction == Direction::forward ? -numerator : numerator, denominator);
  return {static_cast<float>(cosine), static_cast<float>(sine)};
}

/// A compile-time constant as an argument (the conversion of std::integral_constant is host code only).
template <int value>
struct Constant {
  DIC_HOST_DEVICE constexpr operator int() const { return value; }
};
/// Calls body(Constant<0>{}) ... body(Constant<n - 1>{}): a loop whose counter is a constant.
template <int n, typename Body>
DIC_HOST_DEVICE constexpr void unrolled(Body&& body) {
  [&]<int... k>(std::integer_sequence<int, k...>) { (body(Constant<k>{}), ...); }
  (std::make_integer_sequence<int, n>{});
}

/// Product of z and exp(-+ 2 pi i numerator / denominator).
template <Direction direction, int numerator, int denominator>
DIC_HOST_DEVICE constexpr Complex rotated(Complex z) {
  constexpr Complex w = root<direction>(numerator, denominator);
  if constexpr (numerator % denominator == 0)
    return z;
  else if constexpr (4 * numerator % denominator == 0 && w.im > 0.5f)
    return {-z.im, z.re};
  else if constexpr (4 * numerator % denominator == 0 && w.im < -0.5f)
    return {z.im, -z.re};
  else
    return w * z;
}

/// Largest proper divisor of n among the radices 2, 3, 4; n if there is none.
DIC_HOST_DEVICE constexpr int first_radix(int n) {
  for (int radix = 4; radix > 1; --radix)
    if (n % radix == 0 && n != radix) return radix;
  return n;
}

/// Computes Z[k] = sum_j z[j] exp(-+ 2 pi i j k / n), in place and in order; n = 1, 2, 3, 4 and their
/// products.
template <int n, Direction direction>
DIC_HOST_DEVICE constexpr void dft(Complex (&z)[n]) {
  if constexpr (n == 2) {
    const Complex a = z[0];
    z[0] = a + z[1];
    z[1] = a - z[1];
  } else if constexpr (n == 3) {
    constexpr float half_root_3 = 0.86602540378443864676f;
    const Complex sum = z[1] + z[2], middle = z[0] - 0.5f * sum;
    const Complex lateral = rotated<direction, 1, 4>(half_root_3 * (z[1] - z[2]));
    z[0] = z[0] + sum;
    z[1] = middle + lateral;
    z[2] = middle - lateral;
  } else if constexpr (n == 4) {
    const Complex a = z[0] + z[2], b = z[0] - z[2], c = z[1] + z[3];
    const Complex d = rotated<direction, 1, 4>(z[1] - z[3]);
    z[0] = a + c;
    z[1] = b + d;
    z[2] = a - c;
    z[3] = b - d;
  } else if constexpr (n > 1) {
    // j = inner * j1 + j2, k = k1 + outer * k2.
    constexpr int outer = first_radix(n), inner = n / outer;
    static_assert(outer < n, "no radix for this length");
    Complex part[inner][outer];
    unrolled<inner>([&](auto j2) {
      unrolled<outer>([&](auto j1) { part[j2][j1] = z[inner * j1 + j2]; });
      dft<outer, direction>(part[j2]);
    });
    unrolled<outer>([&](auto k1) {
      Complex column[inner];
      unrolled<inner>([&](auto j2) { column[j2] = rotated<direction, j2 * k1, n>(part[j2][k1]); });
      dft<inner, direction>(column);
      unrolled<inner>([&](auto k2) { z[k1 + outer * k2] = column[k2]; });
    });
  }
}

}  // namespace dic::kernels
