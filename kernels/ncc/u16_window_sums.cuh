#pragma once

#include "ncc/u8_shared.cuh"

/// Sums of a 16-bit reference, and of the window under it for every shift of a block, from shared memory.
/// Exact: elements count as e - origin, integers wrap modulo 2^32 and 2^64, and what they are used for fits.
///
/// The sums of the first column of shifts come from sums along the rows; further right a column leaves the
/// reference and a column enters it. What that changes is computed for every column at once (a thread slides
/// down its two columns) and added up by whoever walks along a row of shifts.
namespace dic::kernels {

using u16 = std::uint16_t;

/// Of the elements under the reference, less the origin.
struct WindowSum16 {
  Word sum;  ///< modulo 2^32
  std::int64_t squares;
};

/// Sizes of two tables: changes[x][row] for the step from column x to x + 1, and sums of rows over the
/// columns of the first shift. `Square` holds the sums of squares of one row or column.
template <typename Square>
struct WindowTables {
  int columns = 0;  ///< of changes
  int stride = 0;   ///< of a column of changes, in elements: odd, for threads along x and along y
  int rows = 0;     ///< of the window

  WindowTables() = default;
  WindowTables(int shifts_x, int shifts_y, int height)
      : columns(shifts_x - 1), stride(shifts_y | 1), rows(height + shifts_y - 1) {}

  __host__ __device__ int elements() const { return columns * stride + rows; }
  __host__ __device__ int words() const {
    return elements() * static_cast<int>(sizeof(Square) + sizeof(Word)) / static_cast<int>(sizeof(Word));
  }
};

template <typename Square>
class WindowSums16 {
 public:
  /// memory: tables.words(), 8-byte aligned. window: element (0, 0) under the first shift.
  __device__ WindowSums16(const WindowTables<Square>& tables, Word* memory, const u16* window,
                          int window_stride, int height, int width, int origin)
      : tables_(tables),
        squares_(reinterpret_cast<Square*>(memory)),
        sums_(reinterpret_cast<Word*>(squares_ + tables.elements())),
        window_(window),
        stride_(window_stride),
        height_(height),
        width_(width),
        origin_(origin) {}

  /// Fills the tables for shifts_x x shifts_y shifts.
  __device__ void fill(int shifts_x, int shifts_y) const {
    for (int row = threadIdx.x; row < height_ + shifts_y - 1; row += blockDim.x) sum_row(row);
    const int threads = static_cast<int>(blockDim.x);
    const int threads_per_part = min(round_up(max(shifts_x - 1, 1), warp_size), threads);
    const int rows = (shifts_y * threads_per_part + threads - 1) / threads;  // of a part
    const int begin = threadIdx.x / threads_per_part * rows;
    for (int x = threadIdx.x % threads_per_part; x < shifts_x - 1; x += threads_per_part)
      slide(x, begin, min(begin + rows, shifts_y));
  }

  /// The sums for shift (x, y), from filled tables.
  __device__ WindowSum16 at(int x, int y) const {
    WindowSum16 sum{0, 0};
#pragma unroll 4
    for (int i = y; i < y + height_; ++i) add(sum, row_sums() + i);
#pragma unroll 4
    for (int i = 0; i < x; ++i) step(sum, i, y);
    return sum;
  }
  /// From shift (x, y) to (x + 1, y).
  __device__ void step(WindowSum16& sum, int x, int y) const { add(sum, x * tables_.stride + y); }

 private:
  __device__ int row_sums() const { return tables_.columns * tables_.stride; }
  __device__ void add(WindowSum16& sum, int element) const {
    sum.sum += sums_[element];
    sum.squares += squares_[element];
  }

  __device__ void sum_row(int row) const {
    const u16* elements = window_ + row * stride_;
    Word sum = 0;
    Square squares = 0;
#pragma unroll 4
    for (int i = 0; i < width_; ++i) {
      const int e = elements[i] - origin_;
      sum += e;
      squares += square(e);
    }
    sums_[row_sums() + row] = sum;
    squares_[row_sums() + row] = squares;
  }

  /// Changes of column x for the rows begin .. end - 1 of shifts.
  __device__ void slide(int x, int begin, int end) const {
    if (begin >= end) return;
    const u16* left = window_ + begin * stride_ + x;
    Word sum = 0;
    Square squares = 0;
    const auto add_row = [&](const u16* row, int sign) {
      const int in = row[width_], out = row[0], difference = sign * (in - out);
      sum += difference;
      squares += Square{difference} * (in + out - 2 * origin_);
    };
#pragma unroll 4
    for (int i = 0; i < height_; ++i) add_row(left + i * stride_, 1);
    for (int y = begin;; ++y) {
      sums_[x * tables_.stride + y] = sum;
      squares_[x * tables_.stride + y] = squares;
      if (y + 1 == end) return;
      add_row(left + height_ * stride_, 1);
      add_row(left, -1);
      left += stride_;
    }
  }

  __device__ static Square square(int e) {
    const auto magnitude = static_cast<Word>(abs(e));
    return static_cast<Square>(magnitude * magnitude);  // at most 65535^2
  }

  const WindowTables<Square>& tables_;
  Square* squares_;
  Word* sums_;
  const u16* window_;
  int stride_, height_, width_, origin_;
};

}  // namespace dic::kernels
