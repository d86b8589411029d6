#pragma once

#include "refine/frame.cuh"
#include "refine/spline_weights.cuh"

namespace dic::kernels {

template <int kDegree>
__device__ float gathered_value(const float* coefficients, int stride, float x, float y) {
  const float fx = floorf(x), fy = floorf(y);
  float wx[kDegree + 1], wy[kDegree + 1];
  scaled_spline_weights(x - fx, wx);
  scaled_spline_weights(y - fy, wy);
  const float* taps =
      coefficients + (static_cast<int>(fy) - kDegree / 2) * stride + static_cast<int>(fx) - kDegree / 2;
  float value = 0;
#pragma unroll
  for (int r = 0; r <= kDegree; ++r, taps += stride) {
    float row = wx[0] * taps[0];
#pragma unroll
    for (int k = 1; k <= kDegree; ++k) row += wx[k] * taps[k];
    value += wy[r] * row;
  }
  return value;
}

/// The general variant: every pixel gathers its own (degree + 1)^2 coefficients. Any deformation, any cut or
/// masked subset.
template <int kDegree, int kOrder>
struct Gathering {
  static constexpr int most_iterations = -1;  ///< no limit of its own
  __device__ static bool takes(const RefineFrame&, const PreparedSubset&) { return true; }

  __device__ static bool add(const RefineFrame& frame, const Placed<kOrder>& at, float& total) {
    LaneSums<kOrder> sums;
    const RefineReference& reference = frame.reference;
    const PreparedSubset& s = at.subset(frame);
    const int width = s.right - s.left + 1, stride = reference.layout.stride, lane = lane_index();
    const int down = warp_size / width, along = warp_size % width;
    const float* centre = frame.coefficients + (s.y * stride + s.x + at.shift);
    int i = s.left + lane % width;
    for (int j = s.top + lane / width; j <= s.bottom; j += down) {
      const ReferencePixel f = reference.pixels[(s.y + j) * stride + s.x + i];
      if (f.weight != 0) {
        const auto fi = static_cast<float>(i), fj = static_cast<float>(j);
        const float x = fi + at.displacement.x(fi, fj), y = fj + at.displacement.y(fi, fj);
        sums.add(gathered_value<kDegree>(centre, stride, x, y) - at.offset, f, fi, fj);
      }
      i += along;
      if (i > s.right) {
        i -= width;
        ++j;
      }
    }
    total = LaneSums<kOrder>::Total::of(sums.values);
    return true;
  }
};

}  // namespace dic::kernels
