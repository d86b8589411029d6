#pragma once

namespace dic::kernels {

/// Weights of the degree + 1 spline coefficients around a position t past a knot, times 6 (cubic) or 120
/// (quintic): the spline's own for 0 <= t <= 1, its polynomials continued beyond.
template <typename T>
__device__ void scaled_spline_weights(T t, T (&w)[4]) {
  const T s = 1 - t, t2 = t * t, s2 = s * s;
  w[0] = s2 * s;
  w[3] = t2 * t;
  w[1] = 3 * w[3] + (4 - 6 * t2);
  w[2] = 3 * w[0] + (4 - 6 * s2);
}
/// Derivatives of the weights by t.
__device__ inline void scaled_spline_slopes(float t, float (&w)[4]) {
  const float s = 1 - t;
  w[0] = -3 * s * s;
  w[3] = 3 * t * t;
  w[1] = t * (9 * t - 12);
  w[2] = s * (12 - 9 * s);
}

/// Second derivatives of the weights by t.
__device__ inline void scaled_spline_bends(float t, float (&w)[4]) {
  const float s = 1 - t;
  w[0] = 6 * s;
  w[3] = 6 * t;
  w[1] = 18 * t - 12;
  w[2] = 18 * s - 12;
}

template <typename T>
__device__ void scaled_spline_weights(T t, T (&w)[6]) {
  const T s = 1 - t, t2 = t * t, s2 = s * s;
  // 120 beta5 = 66 - 60 x^2 + 30 x^4 - 10 |x|^5 for |x| < 1 and (3 - x)^5 - 6 (2 - x)^5 for 1 <= x < 2.
  const auto inner = [](T x, T x2) { return 66 + x2 * (x2 * (30 - 10 * x) - 60); };
  const auto fifth = [](T x, T x2) { return x2 * x2 * x; };
  w[0] = fifth(s, s2);
  w[5] = fifth(t, t2);
  w[2] = inner(t, t2);
  w[3] = inner(s, s2);
  const T s1 = 2 - t, t1 = 1 + t;
  w[1] = fifth(s1, s1 * s1) - 6 * w[0];
  w[4] = fifth(t1, t1 * t1) - 6 * w[5];
}
__device__ inline void scaled_spline_slopes(float t, float (&w)[6]) {
  const float s = 1 - t, s1 = 2 - t, t1 = 1 + t;
  const auto fourth = [](float x) { return (x * x) * (x * x); };
  const auto inner = [](float x) { return x * (x * x * (120 - 50 * x) - 120); };
  w[0] = -5 * fourth(s);
  w[5] = 5 * fourth(t);
  w[2] = inner(t);
  w[3] = -inner(s);
  w[1] = -5 * fourth(s1) - 6 * w[0];
  w[4] = 5 * fourth(t1) - 6 * w[5];
}

__device__ inline void scaled_spline_bends(float t, float (&w)[6]) {
  const float s = 1 - t, s1 = 2 - t, t1 = 1 + t;
  const auto third = [](float x) { return x * x * x; };
  const auto inner = [](float x) { return x * x * (360 - 200 * x) - 120; };
  w[0] = 20 * third(s);
  w[5] = 20 * third(t);
  w[2] = inner(t);
  w[3] = inner(s);
  w[1] = 20 * third(s1) - 6 * w[0];
  w[4] = 20 * third(t1) - 6 * w[5];
}

}  // namespace dic::kernels
