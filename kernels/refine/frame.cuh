#pragma once

#include <dic/kernels/refine.hpp>
#include <dic/shared/icgn.hpp>

#include "common/transposed_sum.cuh"
#include "refine/deal.hpp"

/// What the iterations of all variants share: the warp's state and the sums that a variant supplies.
namespace dic::kernels {

constexpr unsigned all_lanes = 0xffffffffu;

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % warp_size); }

template <typename T>
__device__ T from_lane(T value, int source) {
  return __shfl_sync(all_lanes, value, source);
}

struct RefineFrame {
  RefineReference reference;
  const float* coefficients;
  const PreparedSubset* subsets;
  const float* matrices;
  const RefineTask* tasks;
  RefineResult* results;
  std::int64_t count;
  Deal deal;
  float tolerance, min_zncc;
  int max_iterations;
};

/// Degree of the polynomials of a shape function; order 0 has slopes too, which stay 0.
template <int kOrder>
constexpr int polynomial_degree = kOrder == 2 ? 2 : 1;
template <int kOrder>
using ShapeOf = BasicWarp<float, polynomial_degree<kOrder>>;

/// Sums of g, the interpolated current values less the offset, as a lane adds them up.
template <int kOrder>
struct LaneSums {
  static constexpr int terms = icgn::monomial_count(kOrder), count = 3 + 2 * terms;
  using Total = TransposedSum<count>;
  /// g, g g, f g (f as it is in the picture), then dx g i^a j^b, then dy g i^a j^b.
  float values[count] = {};

  __device__ void add(float g, const ReferencePixel& f, float i, float j) {
    values[0] += g;
    values[1] += g * g;
    values[2] += f.grey * g;
    add_moments(3, g * f.dx, i, j);
    add_moments(3 + terms, g * f.dy, i, j);
  }

 private:
  __device__ void add_moments(int first, float value, float i, float j) {
    values[first] += value;
    if constexpr (kOrder >= 1) {
      values[first + 1] += value * i;
      values[first + 2] += value * j;
    }
    if constexpr (kOrder == 2) {
      values[first + 3] += value * i * i;
      values[first + 4] += value * i * j;
      values[first + 5] += value * j * j;
    }
  }
};

/// A subset under a displacement, as a variant sees it.
template <int kOrder>
struct Placed {
  std::int32_t point;
  int shift;                     ///< whole-pixel displacement, as a distance within a plane
  ShapeOf<kOrder> displacement;  ///< relative to `shift`
  float offset;                  ///< subtracted from every interpolated value, near their mean

  __device__ const PreparedSubset& subset(const RefineFrame& frame) const { return frame.subsets[point]; }
};

}  // namespace dic::kernels
