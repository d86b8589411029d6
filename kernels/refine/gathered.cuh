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

/// The general variant: every pixel gathers its own (degree + 1)^2 coefficients. Any deformation, any cut or
/// masked subset; sums in double where convergence is slow.
template <int kDegree, int kOrder>
struct Gathering {
  using Real = double;
  static constexpr bool exact = true;
  static constexpr float far = 1e30f;
  __device__ static bool trusts(float, int) { return true; }
  __device__ static bool takes(const RefineFrame&, const PreparedSubset&) { return true; }
  __device__ static int rows_of_block(const RefineFrame&, const Placed<kOrder, Real>&, bool, float) {
    return all_rows;
  }

  __device__ static void sum(const RefineFrame& frame, const Placed<kOrder, Real>& at, Real& total) {
    total = at.iterations < icgn::float_iterations ? total_of<float>(frame, at) : total_of<double>(frame, at);
  }

 private:
  template <typename T>
  __device__ static T total_of(const RefineFrame& frame, const Placed<kOrder, Real>& at) {
    LaneSums<kOrder, T> sums;
    const auto displacement = converted<T>(at.displacement);
    const T offset = static_cast<T>(at.offset), contrast = static_cast<T>(at.contrast);
    const RefineReference& reference = frame.reference;
    const PreparedSubset& s = frame.subsets[at.point];
    const int width = s.right - s.left + 1, stride = reference.layout.stride, lane = lane_index();
    const int down = warp_size / width, along = warp_size % width;
    const CoefficientPair* coefficients = frame.coefficients + at.shift;
    int i = s.left + lane % width;
    for (int j = s.top + lane / width; j <= s.bottom; j += down) {
      const int index = at.centre + j * stride + i;
      const ReferencePixel f = reference.pixels[index];
      if (counts(f)) {
        const auto fi = static_cast<float>(i), fj = static_cast<float>(j);
        const T value = gathered_value<kDegree>(coefficients + index, stride, displacement.x(fi, fj),
                                                displacement.y(fi, fj));
        const T e = value - offset - contrast * f.grey;
        sums.add(e, f.grey, exact_gradient(f, reference.rest[index]), fi, fj);
      }
      i += along;
      if (i > s.right) {
        i -= width;
        ++j;
      }
    }
    return LaneSums<kOrder, T>::Total::of(sums.values);
  }
};

}  // namespace dic::kernels
