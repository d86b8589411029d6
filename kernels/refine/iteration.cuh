#pragma once

#include <dic/kernels/refine.hpp>
#include <dic/shared/icgn.hpp>

#include "common/transposed_sum.cuh"
#include "filter/reference_pixel.cuh"
#include "refine/column_schedule.hpp"
#include "refine/window.hpp"

/// Arguments, order of the tasks, state of a point and sums that all variants of the iterations share.
namespace dic::kernels {

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % warp_size); }

/// The order of the tasks: strips of 12 rows of the grid, column by column. The points of a block are then
/// neighbours, and its warps share pixels in the cache. Tasks of no grid keep their order.
struct TaskOrder {
  static constexpr int strip_rows = 12;
  int columns, rows;    ///< size of a strip
  int tile;             ///< places that a block takes at once; all blocks take equally many tiles
  std::int64_t places;  ///< number of places, some of which have no task

  /// Order for at least 1 task (count). most_tile: upper limit of `tile`.
  __device__ static TaskOrder make(std::int64_t count, int grid_columns, std::int64_t blocks, int most_tile) {
    TaskOrder order{1, 1, 1, 0};
    const bool is_grid = grid_columns > 0 && count > grid_columns;
    if (is_grid) order.columns = grid_columns, order.rows = strip_rows;
    const std::int64_t strip_tasks = std::int64_t{order.columns} * order.rows;
    order.places = divided_up(count, strip_tasks) * strip_tasks;
    const std::int64_t times = divided_up(order.places, blocks * most_tile);
    order.tile = static_cast<int>(divided_up(order.places, blocks * times));
    return order;
  }

  __device__ std::int64_t task_at(std::int64_t place) const {
    const std::int64_t column = place / rows, strip = column / columns;
    return (strip * rows + place % rows) * columns + column % columns;
  }

 private:
  __device__ static std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
};

struct RefineArguments {
  RefineReference reference;
  const CoefficientPair* coefficients;
  const PreparedSubset* subsets;
  const float* matrices;
  RefineTasks tasks;
  RefineResult* results;
  ColumnSchedule schedule;
  float tolerance, min_zncc;
  int max_iterations;
  Window window;
};

/// Degree of the polynomials of a shape function; order 0 also has slopes, which stay 0.
template <int kOrder>
constexpr int polynomial_degree = kOrder == 2 ? 2 : 1;
template <int kOrder, typename T = float>
using ShapeOf = BasicWarp<T, polynomial_degree<kOrder>>;

/// Sums over the pixels of one lane. e: interpolated current value less the fit contrast * f + offset.
template <int kOrder, typename T = float>
struct LaneSums {
  static constexpr int terms = icgn::monomial_count(kOrder), count = 3 + 2 * terms;
  using Total = TransposedSum<count>;
  /// Sums of e, e e, f e (f: grey value of the reference), then dx e i^a j^b, then dy e i^a j^b. Gradients
  /// are in the unit of gradient_unit().
  T values[count] = {};

  __device__ void add(float weight, T e, float f, float2 gradient, float i, float j) {
    const T weighted = weight * e;
    values[0] += weighted;
    values[1] += weighted * e;
    values[2] += f * weighted;
    add_moments(3, weighted * gradient.x, i, j);
    add_moments(3 + terms, weighted * gradient.y, i, j);
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

/// Value of rows_of_block if the displacement does not change along columns.
constexpr int all_rows = 1 << 30;

/// State of a point on which the sums of an iteration depend.
template <int kOrder, typename T = float>
struct IterationState {
  ShapeOf<kOrder, T> displacement;  ///< relative to whole pixels
  T contrast;                       ///< contrast of the current subset, divided by that of the reference
  T offset;                         ///< grey value of the fit where the reference is 0
  std::int32_t point;
  int centre;                ///< centre of the subset, as an index within a plane
  int shift;                 ///< whole-pixel displacement, as a distance within a plane
  int rows_of_block;         ///< see Sliding::rows_of_block
  std::uint16_t iterations;  ///< number of finished iterations
  bool whole;                ///< all pixels of the square count
};

}  // namespace dic::kernels
