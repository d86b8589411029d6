#pragma once

#include <algorithm>

#include "ncc/u8_shared.cuh"

/// Sums of the window under a 16-bit reference, for every shift of a block, from shared memory. Elements
/// count as e - origin; integers wrap modulo 2^32 and 2^64, and what they are used for fits.
///
/// The sums of the first column of shifts come from sums over the rows; further right a column leaves the
/// reference and a column enters it. What that changes is computed for every column at once (a thread slides
/// down its two columns) and added up by whoever walks along a row of shifts.
namespace dic::kernels {

using u16 = std::uint16_t;

/// Of the elements under the reference, less the origin.
struct WindowSum16 {
  Word sum;  ///< modulo 2^32
  std::int64_t squares;

  __device__ void add(const WindowSum16& other) {
    sum += other.sum;
    squares += other.squares;
  }
};

/// Division of numbers below 2^16 / divisor by a divisor that the host knows.
struct Divisor {
  int divisor = 1;
  unsigned inverse = 65537;

  Divisor() = default;
  explicit Divisor(int by) : divisor(by), inverse(65536u / by + 1) {}
  __device__ int quotient(int number) const { return static_cast<int>(number * inverse >> 16); }
};

/// Sizes of two tables: changes[x][row] for the step from column x to x + 1, and sums over the first columns
/// of the window's rows. `Square` holds the change of a sum of squares.
template <typename Square>
struct WindowTables {
  int columns = 0;        ///< of changes; one more than there are, so that a step too far stays inside
  int stride = 0;         ///< of a column of changes, in elements: odd, for threads along x and along y
  int rows = 0;           ///< of the window
  Divisor column_warps;   ///< how many warps the changes of a row of shifts take
  int rows_per_part = 0;  ///< the rows of shifts are shared out among groups of so many warps

  WindowTables() = default;
  WindowTables(int shifts_x, int shifts_y, int height, int warps)
      : columns(shifts_x),
        stride(shifts_y | 1),
        rows(height + shifts_y - 1),
        column_warps(std::clamp((shifts_x - 1 + warp_size - 1) / warp_size, 1, warps)) {
    const int parts = warps / column_warps.divisor;
    rows_per_part = (shifts_y + parts - 1) / parts;
  }

  __host__ __device__ int changes() const { return columns * stride; }
  int change_words() const {
    return changes() * static_cast<int>(sizeof(Square) + sizeof(Word)) / static_cast<int>(sizeof(Word));
  }
  int row_words() const {
    return rows * static_cast<int>(sizeof(std::int64_t) + sizeof(Word)) / static_cast<int>(sizeof(Word));
  }
};

/// In shared memory.
template <typename Square>
class WindowSums16 {
 public:
  /// memory: the tables' change_words() and row_words(), aligned to 8 bytes.
  __device__ WindowSums16(const WindowTables<Square>& tables, Word* changes, Word* rows, int height)
      : tables_(tables),
        height_(height),
        squares_(reinterpret_cast<Square*>(changes)),
        sums_(reinterpret_cast<Word*>(squares_ + tables.changes())),
        row_squares_(reinterpret_cast<std::int64_t*>(rows)),
        row_sums_(reinterpret_cast<Word*>(row_squares_ + tables.rows)) {}

  /// Sums the rows of the window for shifts_y rows of shifts, by `threads` threads. window: element (0, 0)
  /// under the first shift; its rows are `stride` elements apart. After a barrier add_up_rows() goes on.
  __device__ void sum_rows(int thread, int threads, const u16* window, int stride, int width, int origin,
                           int shifts_y) const {
    // Rows that begin at the same bank are summed from different elements on.
    const int log2_period = stride / 2 % 32 == 16 ? 1 : 3;
    for (int row = thread; row < height_ + shifts_y - 1; row += threads) {
      const int start = min((row >> log2_period) % 4 * 2, width);
      WindowSum16 sum{0, 0};
      add_elements(window + row * stride, start, width, origin, sum);
      add_elements(window + row * stride, 0, start, origin, sum);
      row_sums_[row] = sum.sum;
      row_squares_[row] = sum.squares;
    }
  }

  /// Turns the sums of rows into those of all rows up to them. For one warp.
  __device__ void add_up_rows(int shifts_y) const {
    constexpr unsigned all = 0xffffffffu;
    const int lane = threadIdx.x % warp_size, rows = height_ + shifts_y - 1;
    WindowSum16 before{0, 0};
    for (int first = 0; first < rows; first += warp_size) {
      const int row = first + lane;
      WindowSum16 sum{0, 0};
      if (row < rows) sum = {row_sums_[row], row_squares_[row]};
      if (lane == 0) sum.add(before);
#pragma unroll
      for (int distance = 1; distance < warp_size; distance *= 2) {
        const WindowSum16 above{__shfl_up_sync(all, sum.sum, distance),
                                __shfl_up_sync(all, sum.squares, distance)};
        if (lane >= distance) sum.add(above);
      }
      if (row < rows) row_sums_[row] = sum.sum, row_squares_[row] = sum.squares;
      before = {__shfl_sync(all, sum.sum, warp_size - 1), __shfl_sync(all, sum.squares, warp_size - 1)};
    }
  }

  /// The changes for shifts_x x shifts_y shifts, by all threads.
  __device__ void find_changes(const u16* window, int stride, int width, int origin, int shifts_x,
                               int shifts_y) const {
    const int warp = threadIdx.x / warp_size;
    const int part = tables_.column_warps.quotient(warp), of_part = tables_.column_warps.divisor;
    const int begin = part * tables_.rows_per_part, end = min(begin + tables_.rows_per_part, shifts_y);
    if (begin >= end) return;
    for (int x = threadIdx.x - part * of_part * warp_size; x < shifts_x - 1; x += of_part * warp_size)
      slide(window + begin * stride + x, stride, width, origin, x, begin, end);
  }

  /// Walks along a row of shifts, from (x, y) on.
  class Walk {
   public:
    WindowSum16 sum;

    __device__ Walk(const WindowSums16& sums, int x, int y)
        : stride_(sums.tables_.stride), sums_(sums.sums_ + y), squares_(sums.squares_ + y) {
      const int last = y + sums.height_ - 1;
      sum = {sums.row_sums_[last], sums.row_squares_[last]};
      if (y > 0) sum.add({0 - sums.row_sums_[y - 1], -sums.row_squares_[y - 1]});
#pragma unroll 4
      for (int i = 0; i < x; ++i) step();
    }
    __device__ void step() {
      sum.add({*sums_, *squares_});
      sums_ += stride_;
      squares_ += stride_;
    }

   private:
    int stride_;
    const Word* sums_;
    const Square* squares_;
  };

 private:
  __device__ static void add_elements(const u16* elements, int begin, int end, int origin, WindowSum16& to) {
    Square squares = 0;
#pragma unroll 4
    for (int i = begin; i < end; ++i) {
      const int e = elements[i] - origin;
      const auto magnitude = static_cast<Word>(abs(e));
      to.sum += e;
      squares += static_cast<Square>(magnitude * magnitude);  // at most 65535^2
    }
    to.squares += squares;
  }

  /// Changes of column x for the rows begin .. end - 1 of shifts. `left`: row `begin` of the column that
  /// leaves.
  __device__ void slide(const u16* left, int stride, int width, int origin, int x, int begin, int end) const {
    Word sum = 0;
    Square squares = 0;
    const auto add_row = [&](const u16* row, int sign) {
      const int in = row[width], out = row[0], difference = sign * (in - out);
      sum += difference;
      squares += Square{difference} * (in + out - 2 * origin);
    };
    const u16* entering = left;
#pragma unroll 4
    for (int i = 0; i < height_; ++i, entering += stride) add_row(entering, 1);
    Word* to_sum = sums_ + x * tables_.stride + begin;
    Square* to_squares = squares_ + x * tables_.stride + begin;
#pragma unroll 2
    for (int rows = end - begin;; entering += stride, left += stride) {
      *to_sum++ = sum;
      *to_squares++ = squares;
      if (--rows == 0) return;
      add_row(entering, 1);
      add_row(left, -1);
    }
  }

  const WindowTables<Square>& tables_;
  int height_;
  Square* squares_;
  Word* sums_;
  std::int64_t* row_squares_;
  Word* row_sums_;
};

}  // namespace dic::kernels
