#pragma once

#include "refine/frame.cuh"
#include "refine/spline_weights.cuh"

namespace dic::kernels {

/// At a displacement (x, y) from the knot at `coefficients`: alone, it keeps all its digits.
template <int kDegree>
__device__ float gathered_value(const CoefficientPair* coefficients, int stride, float x, float y) {
  const float fx = floorf(x), fy = floorf(y);
  float wx[kDegree + 1], wy[kDegree + 1];
  scaled_spline_weights(x - fx, wx);
  scaled_spline_weights(y - fy, wy);
  const CoefficientPair* taps =
      coefficients + (static_cast<int>(fy) - kDegree / 2) * stride + static_cast<int>(fx) - kDegree / 2;
  float value = 0;
#pragma unroll
  for (int r = 0; r <= kDegree; ++r, taps += stride) {
    float row = wx[0] * taps[0].upper;
#pragma unroll
    for (int k = 1; k <= kDegree; ++k) row += wx[k] * taps[k].upper;
    value += wy[r] * row;
  }
  return value;
}

/// The general variant: every pixel gathers its own (degree + 1)^2 coefficients. Any deformation, any cut or
/// masked subset.
template <int kDegree, int kOrder>
struct Gathering {
  static constexpr bool exact = true;
  static constexpr int most_iterations = 1 << 30;
  static constexpr float far = 1e30f;
  __device__ static bool trusts(float) { return true; }
  __device__ static bool takes(const RefineFrame&, const PreparedSubset&) { return true; }
  __device__ static int rows_of_block(const RefineFrame&, const Placed<kOrder>&, bool, float) {
    return all_rows;
  }

  __device__ static void sum(const RefineFrame& frame, const Placed<kOrder>& at, float& total) {
    LaneSums<kOrder> sums;
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
        const float value = gathered_value<kDegree>(coefficients + index, stride, at.displacement.x(fi, fj),
                                                    at.displacement.y(fi, fj));
        const float e = value - at.offset - at.contrast * f.grey;
        sums.add(e, f.grey, exact_gradient(f, reference.rest[index]), fi, fj);
      }
      i += along;
      if (i > s.right) {
        i -= width;
        ++j;
      }
    }
    total = LaneSums<kOrder>::Total::of(sums.values);
  }
};

}  // namespace dic::kernels
