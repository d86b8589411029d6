#pragma once

#include "refine/iteration.cuh"
#include "refine/spline_weights.cuh"

namespace dic::kernels {

/// Value of the spline at a displacement (x, y) from the knot at `coefficients`. The displacement alone,
/// without the position, keeps all digits of a float.
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
  const auto convert = [](const Polynomial<double, kDegree>& p) {
    const auto t = [](double value) { return static_cast<T>(value); };
    return Polynomial<T, kDegree>{t(p.c), t(p.x), t(p.y), t(p.xx), t(p.xy), t(p.yy)};
  };
  return {convert(w.x), convert(w.y)};
}

/// Pixels of a lane: numbers first, first + step, ... of a subset, counted row by row.
struct LanePixels {
  int first, step;
};

/// Sums for which every pixel loads its own (degree + 1)^2 coefficients. They allow any deformation, and
/// clipped and masked subsets. T: float or double.
template <typename T, int kDegree, int kOrder>
__device__ T gathered_total(const RefineArguments& args, const IterationState<kOrder, double>& state,
                            const LanePixels& pixels) {
  LaneSums<kOrder, T> sums;
  const T offset = static_cast<T>(state.offset), contrast = static_cast<T>(state.contrast);
  const RefineReference& reference = args.reference;
  const PreparedSubset& s = args.subsets[state.point];
  const int width = s.right - s.left + 1, stride = reference.layout.stride;
  const int down = pixels.step / width, along = pixels.step % width;
  const CoefficientPair* coefficients = args.coefficients + state.shift;
  int i = s.left + pixels.first % width, j = s.top + pixels.first / width;
  const bool masked = reference.masks.words != nullptr;
  constexpr int at_once = sizeof(T) == sizeof(float) ? 2 : 1;  // pixels whose loads are in flight
  constexpr bool crowded = (kDegree == 5 ? kOrder > 0 : kOrder == 2) && sizeof(T) > sizeof(float);
  while (j <= s.bottom) {
    if constexpr (crowded) asm volatile("" ::: "memory");  // keeps the displacement in shared memory
    const auto displacement = converted<T>(state.displacement);
    ReferencePixel f[at_once];
    float2 gradient[at_once];
    T value[at_once];
    float fi[at_once], fj[at_once];
    bool taken[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      // Hidden pixels may lie outside the current image: the centre is read instead.
      const bool hidden = j > s.bottom || (masked && reference.masks.hide(state.point, i, j));
      const int column = hidden ? 0 : i, row = hidden ? 0 : j;
      const int index = state.centre + row * stride + column;
      f[k] = reference.pixels[index];
      gradient[k] = exact_gradient(f[k], reference.rest[index]);
      fi[k] = static_cast<float>(column);
      fj[k] = static_cast<float>(row);
      value[k] = gathered_value<kDegree>(coefficients + index, stride, displacement.x(fi[k], fj[k]),
                                         displacement.y(fi[k], fj[k]));
      taken[k] = !hidden && counts(f[k]);
      i += along;
      j += down;
      if (i > s.right) {
        i -= width;
        ++j;
      }
    }
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (taken[k])
        sums.add(args.window.weight(fi[k], fj[k]), value[k] - offset - contrast * f[k].grey, f[k].grey,
                 gradient[k], fi[k], fj[k]);
  }
  return LaneSums<kOrder, T>::Total::sum_over_warp(sums.values);
}

/// Variant for points that the sliding variant does not finish. It continues from their last iteration, and
/// leaves points that have not converged when sums should be double to the cooperative variant.
template <int kDegree, int kOrder>
struct Gathering {
  using Real = double;
  static constexpr bool exact = true;
  static constexpr float long_step = 1e30f;
  __device__ static bool trusts(float, int) { return true; }
  __device__ static bool takes(const RefineArguments&, const PreparedSubset&, bool) { return true; }
  __device__ static bool leaves(bool from_start, int iterations) {
    return !from_start || iterations >= icgn::float_iterations;
  }
  __device__ static int rows_of_block(const RefineArguments&, const IterationState<kOrder, Real>&, bool,
                                      float) {
    return all_rows;
  }

  __device__ static void sum(const RefineArguments& args, const IterationState<kOrder, Real>& state,
                             Real& total) {
    total = gathered_total<float, kDegree>(args, state, {lane_index(), warp_size});
  }
};

/// The cooperative float64 variant, for points that converge slowly or not at all. It repeats all iterations,
/// the later ones with sums in double, where rounding errors of floats would decide the status. Such points
/// are few and take many iterations: all warps of a block work on one point, each on a fixed part of its
/// pixels.
template <int kDegree, int kOrder>
struct Cooperative : Gathering<kDegree, kOrder> {
  using Real = double;
  static constexpr int parts = 8;
  __device__ static bool leaves(bool, int) { return false; }

  __device__ static Real sum_part(const RefineArguments& args, const IterationState<kOrder, Real>& state,
                                  int part) {
    const LanePixels pixels{part * warp_size + lane_index(), parts * warp_size};
    return state.iterations < icgn::float_iterations ? gathered_total<float, kDegree>(args, state, pixels)
                                                     : gathered_total<double, kDegree>(args, state, pixels);
  }
};

}  // namespace dic::kernels
