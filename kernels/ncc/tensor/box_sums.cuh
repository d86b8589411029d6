#pragma once

#include "common/launch.cuh"
#include "ncc/scoring/scoring.cuh"
#include "ncc/stage_patch.cuh"

/// Sums over the window under the reference, for the shifts of a block, from elements in shared memory. A
/// warp walks down some rows of shifts. Elements are converted to integers, so that sliding sums are exact:
/// adding and subtracting a value leaves no rounding error.
namespace dic::kernels {

/// Largest integer of which n can be squared and summed: n sum(b b) - sum(b)^2 stays below 2^63. Elements are
/// rounded by at most half a unit, which is the largest element divided by this integer.
__device__ inline float largest_box_integer(int n) {
  constexpr float exact_in_float = 0x1p22f;
  return fminf(__fdividef(0x1p31f, n), exact_in_float) * (1 - 0x1p-19f);
}

struct BoxSum {
  int sum;
  std::uint64_t squares;
};
/// Inverse root of the variation of n elements; NaN without contrast.
__device__ inline float inverse_root_of_variation(int n, const BoxSum& of) {
  const auto variation = static_cast<std::int64_t>(n * of.squares - std::int64_t{of.sum} * of.sum);
  return variation > 0 ? inverse_root(static_cast<float>(variation)) : no_score;
}

constexpr int most_box_columns = 8 * warp_size;
/// Distribution of the columns of the window over a warp: `lanes` lanes have `columns` neighbouring columns
/// each. Remaining lanes, if any, have other rows.
struct BoxShape {
  int columns, lanes;

  __host__ __device__ constexpr int groups() const { return warp_size / lanes; }
  /// Number of places of a row's prefix sums; an odd distance from lane to lane avoids bank conflicts.
  __host__ __device__ constexpr int places() const { return lanes * (columns | 1) + 1; }
  /// Words of shared memory per warp.
  __host__ __device__ constexpr int words() const { return round_up(3 * places() * groups(), 4); }
};
__host__ __device__ constexpr BoxShape box_shape(int columns) {
  const int columns_per_lane = (columns + warp_size - 1) / warp_size;
  if (columns_per_lane <= 2) return {4, 16};
  return {columns_per_lane <= 4 ? columns_per_lane : 8, 32};
}

/// Prefix sums in shared memory: over the columns to the left of each column of a row, and of the one after
/// the last.
template <BoxShape shape>
struct BoxPrefix {
  std::uint64_t* squares;
  int* sums;

  __device__ BoxPrefix(float* warp_memory, int group)
      : squares(reinterpret_cast<std::uint64_t*>(warp_memory) + group * shape.places()),
        sums(reinterpret_cast<int*>(warp_memory) + (2 * shape.groups() + group) * shape.places()) {}
  __device__ static int at(int column) {
    return shape.columns % 2 == 0 ? column + column / shape.columns : column;
  }
  __device__ void store(int column, const BoxSum& of) const {
    squares[at(column)] = of.squares;
    sums[at(column)] = of.sum;
  }
  /// Sums over `width` columns, beginning with `column`.
  __device__ BoxSum box(int column, int width) const {
    const int left = at(column), right = at(column + width);
    return {sums[right] - sums[left], squares[right] - squares[left]};
  }
};

/// Elements in shared memory, beginning with the one under the reference's first element at the first shift,
/// and a warp's rows of shifts.
struct Boxes {
  const float* elements;
  int stride, height, width;  ///< stride of rows; height and width of the reference
  int shifts_x, first_y, end_y;
};

/// Sums over the rows of the reference's height, for a lane's columns.
template <BoxShape shape, typename ToInteger>
struct ColumnBoxes {
  int sums[shape.columns] = {};
  std::uint64_t squares[shape.columns] = {};
  const ToInteger& to_integer;

  __device__ explicit ColumnBoxes(const ToInteger& conversion) : to_integer(conversion) {}
  __device__ void add(const float* row) {
#pragma unroll
    for (int i = 0; i < shape.columns; ++i) {
      const int integer = to_integer(row[i]);
      sums[i] += integer;
      squares[i] += std::int64_t{integer} * integer;
    }
  }
  __device__ void exchange(const float* entering, const float* leaving) {
#pragma unroll
    for (int i = 0; i < shape.columns; ++i) {
      const int in = to_integer(entering[i]), out = to_integer(leaving[i]);
      sums[i] += in - out;
      squares[i] += std::int64_t{in - out} * (in + out);
    }
  }
  /// Stores the prefix sums. Whole warps must call it.
  __device__ void store(int lane, const BoxPrefix<shape>& prefix) const {
    BoxSum total{0, 0};
#pragma unroll
    for (int i = 0; i < shape.columns; ++i) total.sum += sums[i], total.squares += squares[i];
    BoxSum before = total;
#pragma unroll
    for (int distance = 1; distance < shape.lanes; distance *= 2) {
      const BoxSum left{__shfl_up_sync(all_lanes, before.sum, distance, shape.lanes),
                        __shfl_up_sync(all_lanes, before.squares, distance, shape.lanes)};
      if (lane >= distance) before.sum += left.sum, before.squares += left.squares;
    }
    if (lane == shape.lanes - 1) prefix.store(shape.lanes * shape.columns, before);
    before.sum -= total.sum, before.squares -= total.squares;
#pragma unroll
    for (int i = 0; i < shape.columns; ++i) {
      prefix.store(shape.columns * lane + i, before);
      before.sum += sums[i], before.squares += squares[i];
    }
  }
};

template <BoxShape shape, typename ToInteger>
__device__ void fill_inverse_roots(const Boxes& boxes, const ToInteger& to_integer, float* warp_memory,
                                   float* roots, int roots_stride) {
  const int lane = threadIdx.x % shape.lanes, group = threadIdx.x % warp_size / shape.lanes;
  const int rows = boxes.end_y - boxes.first_y;
  if (rows <= 0) return;
  // If the rows do not divide evenly, two groups compute the same rows.
  const int per_group = (rows + shape.groups() - 1) / shape.groups();
  const int own_y = boxes.first_y + group * per_group, first_y = min(own_y, boxes.first_y + rows - per_group);
  const BoxPrefix<shape> prefix(warp_memory, group);
  const float* entering = boxes.elements + first_y * boxes.stride + lane * shape.columns;
  const float* leaving = entering;
  ColumnBoxes<shape, ToInteger> column_boxes(to_integer);
#pragma unroll(shape.columns <= 4 ? 2 : 1)
  for (int row = 0; row < boxes.height; ++row, entering += boxes.stride) column_boxes.add(entering);
  for (int y = 0; y < per_group; ++y) {
    column_boxes.store(lane, prefix);
    __syncwarp();
    float* const row = roots + (first_y + y) * roots_stride;
    const int end_x = first_y + y >= own_y ? boxes.shifts_x : 0;
#pragma unroll 1
    for (int x = lane; x < end_x; x += shape.lanes)
      row[x] = inverse_root_of_variation(boxes.height * boxes.width, prefix.box(x, boxes.width));
    __syncwarp();
    if (y + 1 < per_group) column_boxes.exchange(entering, leaving);
    entering += boxes.stride, leaving += boxes.stride;
  }
}

/// Fills roots[y, x] for a warp's rows of shifts. columns: number of columns of the window, at most
/// most_box_columns; elements that follow a row in shared memory are not used. shared:
/// box_shape(columns).words() for each warp.
template <typename ToInteger>
__device__ void fill_inverse_roots(const Boxes& boxes, int columns, const ToInteger& to_integer,
                                   float* shared, float* roots, int roots_stride) {
  float* const warp_memory = shared + threadIdx.x / warp_size * box_shape(columns).words();
  switch (box_shape(columns).columns + box_shape(columns).lanes) {
    case 4 + 16:
      return fill_inverse_roots<BoxShape{4, 16}>(boxes, to_integer, warp_memory, roots, roots_stride);
    case 3 + 32:
      return fill_inverse_roots<BoxShape{3, 32}>(boxes, to_integer, warp_memory, roots, roots_stride);
    case 4 + 32:
      return fill_inverse_roots<BoxShape{4, 32}>(boxes, to_integer, warp_memory, roots, roots_stride);
    default:
      return fill_inverse_roots<BoxShape{8, 32}>(boxes, to_integer, warp_memory, roots, roots_stride);
  }
}

}  // namespace dic::kernels
