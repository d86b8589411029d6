#pragma once

#include <dic/kernels/refine.hpp>
#include <dic/shared/icgn.hpp>

#include "common/transposed_sum.cuh"
#include "filter/reference_pixel.cuh"
#include "refine/deal.hpp"

/// What the iterations of all variants share: the warp's state and the sums that a variant supplies.
namespace dic::kernels {

constexpr unsigned all_lanes = 0xffffffffu;

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % warp_size); }

/// The order in which tasks are done: strips of some rows of the grid, column by column. So the points that a
/// block has at once are side by side, and its warps find each other's pixels in the cache.
struct TaskOrder {
  static constexpr int most_rows = 12;
  int columns, rows;    ///< of a strip
  int of_block;         ///< places that a block takes at once; every block does so equally often
  std::int64_t places;  ///< some have no task

  /// count: at least 1. most_of_block: places that a block takes at once.
  __device__ static TaskOrder of(std::int64_t count, int points_in_a_row, std::int64_t blocks,
                                 int most_of_block) {
    TaskOrder order{1, 1, 1, 0};
    if (points_in_a_row > 0 && count > points_in_a_row)
      order.columns = points_in_a_row, order.rows = most_rows;
    const std::int64_t of_strip = std::int64_t{order.columns} * order.rows;
    order.places = multiples(count, of_strip) * of_strip;
    const std::int64_t times = multiples(order.places, blocks * most_of_block);
    order.of_block = static_cast<int>(multiples(order.places, blocks * times));
    return order;
  }

  __device__ std::int64_t task_at(std::int64_t place) const {
    const std::int64_t column = place / rows, strip = column / columns;
    return (strip * rows + place % rows) * columns + column % columns;
  }

 private:
  __device__ static std::int64_t multiples(std::int64_t all, std::int64_t of) { return (all + of - 1) / of; }
};

struct RefineFrame {
  RefineReference reference;
  const CoefficientPair* coefficients;
  const PreparedSubset* subsets;
  const float* matrices;
  RefineTasks tasks;
  RefineResult* results;
  Deal deal;
  float tolerance, min_zncc;
  int max_iterations;
};

/// Degree of the polynomials of a shape function; order 0 has slopes too, which stay 0.
template <int kOrder>
constexpr int polynomial_degree = kOrder == 2 ? 2 : 1;
template <int kOrder, typename T = float>
using ShapeOf = BasicWarp<T, polynomial_degree<kOrder>>;

/// Sums of what a fit by mean and contrast leaves of the interpolated current values, as a lane adds them up.
template <int kOrder, typename T = float>
struct LaneSums {
  static constexpr int terms = icgn::monomial_count(kOrder), count = 3 + 2 * terms;
  using Total = TransposedSum<count>;
  /// e, e e, f e (f as it is in the image), then dx e i^a j^b, then dy e i^a j^b; gradients in their unit.
  T values[count] = {};

  __device__ void add(T e, float f, float2 gradient, float i, float j) {
    values[0] += e;
    values[1] += e * e;
    values[2] += f * e;
    add_moments(3, e * gradient.x, i, j);
    add_moments(3 + terms, e * gradient.y, i, j);
  }

 private:
  __device__ void add_moments(int first, T value, float i, float j) {
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

/// Rows of a block where the displacement does not change along columns.
constexpr int all_rows = 1 << 30;

/// A subset under a displacement, as a variant sees it.
template <int kOrder, typename T = float>
struct Placed {
  ShapeOf<kOrder, T> displacement;  ///< relative to whole pixels
  T contrast;                       ///< of the current subset over that of the reference, near the fit
  T offset;                         ///< grey value that the fit gives where the reference is 0
  std::int32_t point;
  int centre;                ///< of the subset, as an index within a plane
  int shift;                 ///< whole-pixel displacement, as a distance within a plane
  int rows_of_block;         ///< see Sliding::rows_of_block
  std::uint16_t iterations;  ///< so far
  bool whole;                ///< do all pixels of the square count?
};

}  // namespace dic::kernels
