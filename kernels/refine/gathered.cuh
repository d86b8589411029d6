#pragma once

#include "refine/frame.cuh"
#include "refine/spline_weights.cuh"

namespace dic::kernels {

/// At a displacement (x, y) from the knot at `coefficients`: alone, it keeps all its digits.
template <int kDegree, typename T>
__device__ T gathered_value(const CoefficientPair* coefficients, int stride, T x, T y) {
  const T fx = floor(x), fy = floor(y);
  T wx[kDegree + 1], wy[kDegree + 1];
  scaled_spline_weights(x - fx, wx);
  scaled_spline_weights(y - fy, wy);
  const CoefficientPair* taps =
      coefficients + (static_cast<int>(fy) - kDegree / 2) * stride + static_cast<int>(fx) - kDegree / 2;
  T value = 0;
#pragma unroll
  for (int r = 0; r <= kDegree; ++r, taps += stride) {
    T row = wx[0] * taps[0].upper;
#pragma unroll
    for (int k = 1; k <= kDegree; ++k) row += wx[k] * taps[k].upper;
    value += wy[r] * row;
  }
  return value;
}

template <typename T, int kDegree>
__device__ BasicWarp<T, kDegree> converted(const BasicWarp<double, kDegree>& w) {
  const auto of = [](const Polynomial<double, kDegree>& p) {
    const auto t = [](double value) { return static_cast<T>(value); };
    return Polynomial<T, kDegree>{t(p.c), t(p.x), t(p.y), t(p.xx), t(p.xy), t(p.yy)};
  };
  return {of(w.x), of(w.y)};
}

/// The pixels of a subset that a lane takes, by their numbers row by row.
struct PixelShare {
  int first, step;
};

/// Sums in which every pixel gathers its own (degree + 1)^2 coefficients: any deformation, any cut or masked
/// subset. T: float or double.
template <typename T, int kDegree, int kOrder>
__device__ T gathered_total(const RefineFrame& frame, const Placed<kOrder, double>& at,
                            const PixelShare& share) {
  LaneSums<kOrder, T> sums;
  const auto displacement = converted<T>(at.displacement);
  const T offset = static_cast<T>(at.offset), contrast = static_cast<T>(at.contrast);
  const RefineReference& reference = frame.reference;
  const PreparedSubset& s = frame.subsets[at.point];
  const int width = s.right - s.left + 1, stride = reference.layout.stride;
  const int down = share.step / width, along = share.step % width;
  const CoefficientPair* coefficients = frame.coefficients + at.shift;
  int i = s.left + share.first % width, j = s.top + share.first / width;
  constexpr int at_once = sizeof(T) == sizeof(float) ? 2 : 1;  // pixels whose loads are on their way
  while (j <= s.bottom) {
    ReferencePixel f[at_once];
    float2 gradient[at_once];
    T value[at_once];
    float fi[at_once], fj[at_once];
    bool taken[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      const int row = min(j, static_cast<int>(s.bottom)), index = at.centre + row * stride + i;
      f[k] = reference.pixels[index];
      gradient[k] = exact_gradient(f[k], reference.rest[index]);
      fi[k] = static_cast<float>(i);
      fj[k] = static_cast<float>(row);
      value[k] = gathered_value<kDegree>(coefficients + index, stride, displacement.x(fi[k], fj[k]),
                                         displacement.y(fi[k], fj[k]));
      taken[k] = j <= s.bottom && counts(f[k]);
      i += along;
      j += down;
      if (i > s.right) {
        i -= width;
        ++j;
      }
    }
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (taken[k]) sums.add(value[k] - offset - contrast * f[k].grey, f[k].grey, gradient[k], fi[k], fj[k]);
  }
  return LaneSums<kOrder, T>::Total::of(sums.values);
}

/// The variant for what the fast one leaves. It goes on from there, and gives up what has not converged when
/// sums should be double.
template <int kDegree, int kOrder>
struct Gathering {
  using Real = double;
  static constexpr bool exact = true;
  static constexpr float far = 1e30f;
  __device__ static bool trusts(float, int) { return true; }
  __device__ static bool takes(const PreparedSubset&, bool) { return true; }
  __device__ static bool leaves(bool from_start, int iterations) {
    return !from_start || iterations >= icgn::float_iterations;
  }
  __device__ static int rows_of_block(const RefineFrame&, const Placed<kOrder, Real>&, bool, float) {
    return all_rows;
  }

  __device__ static void sum(const RefineFrame& frame, const Placed<kOrder, Real>& at, Real& total) {
    total = gathered_total<float, kDegree>(frame, at, {lane_index(), warp_size});
  }
};

/// The variant for what converges slowly or not at all: all iterations from the start, sums in double where
/// they would differ between processors. There are few such points, and each has many iterations: so the
/// warps of a block add up parts of a point, always the same ones.
template <int kDegree, int kOrder>
struct Patient : Gathering<kDegree, kOrder> {
  using Real = double;
  static constexpr int parts = 8;
  __device__ static bool leaves(bool, int) { return false; }

  __device__ static Real sum_part(const RefineFrame& frame, const Placed<kOrder, Real>& at, int part) {
    const PixelShare share{part * warp_size + lane_index(), parts * warp_size};
    return at.iterations < icgn::float_iterations ? gathered_total<float, kDegree>(frame, at, share)
                                                  : gathered_total<double, kDegree>(frame, at, share);
  }
};

}  // namespace dic::kernels
