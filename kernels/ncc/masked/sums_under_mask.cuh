#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "ncc/masked/packed_references.cuh"

/// Sums over the window under the elements that count, from running sums along the window's rows.
namespace dic::kernels::masked {

/// Type of sums over any elements of the window: exact for integers; 32 bits if these are enough for sums of
/// products.
template <typename T, typename Sum>
using RunningSum = std::conditional_t<!is_exact<T>, double,
                                      std::conditional_t<sizeof(Sum) == 4, std::uint32_t, std::int64_t>>;
template <typename Value>
struct alignas(2 * sizeof(Value)) Running {
  Value sum, squares;
};
/// Running sums of two neighbours, which are stored together.
template <typename Value>
struct alignas(16) RunningPair {
  Running<Value> left, right;
};

/// Most shifts per thread if a block has more shifts than threads.
template <typename Value>
constexpr int most_shifts = sizeof(Value) == 4 ? 8 : 4;

/// The tiling of a job: a block computes a tile of shifts, band by band of the reference's rows. If it has
/// few shifts, the rows of a band are divided among its warps.
struct MaskedTiling {
  int columns, rows;  ///< shifts of a tile
  int across, down;   ///< tiles
  int parts;          ///< parts of a block among which rows are divided; threads / parts are whole warps
  int band;           ///< rows of the reference in a band
  /// Distance of the rows of running sums of the window. There are band + rows - 1 rows. The first place of a
  /// row is not used, so that pairs from the third place on are aligned; neighbouring rows begin in different
  /// banks.
  int pitch;

  MaskedTiling(const NccJob& job, int value_bytes, int shifts_of_thread) {
    constexpr int most_bytes = 36 * 1024, most_columns = 64;
    across = divide_up(job.shifts.nx(), most_columns);
    columns = divide_up(job.shifts.nx(), across);
    pitch = (job.reference.width + columns + 1) / 4 * 4 + 6;
    const int fit = most_bytes / (2 * value_bytes * pitch);
    down = divide_up(job.shifts.ny(),
                     std::max(std::min(threads * shifts_of_thread / columns, (fit + 1) / 2), 1));
    rows = divide_up(job.shifts.ny(), down);
    band = std::min(job.reference.height, fit - rows + 1);
    parts = std::max(threads / std::max(std::bit_ceil(static_cast<unsigned>(columns * rows)), 32u), 1u);
  }
  bool has_all_shifts() const { return across * down == 1; }
  bool has_few_shifts() const { return columns * rows <= threads; }

 private:
  static int divide_up(int whole, int parts) { return (whole + parts - 1) / parts; }
};

/// Shared memory of a block: running sums, then the bits of the band.
template <typename Value>
struct BandMemory {
  static int bytes(const MaskedTiling& tiling, int row_words) {
    return static_cast<int>(sizeof(Running<Value>)) * sums(tiling) +
           static_cast<int>(sizeof(std::uint32_t)) * tiling.band * row_words;
  }

  __device__ BandMemory(const MaskedTiling& tiling, void* memory)
      : running(static_cast<Running<Value>*>(memory)),
        bits(reinterpret_cast<std::uint32_t*>(running + sums(tiling))) {}

  Running<Value>* running;
  std::uint32_t* bits;

 private:
  __host__ __device__ static int sums(const MaskedTiling& tiling) {
    return tiling.pitch * (tiling.band + tiling.rows - 1);
  }
};

/// Computes the running sums of a rectangle of a window, less `origin` (for floats: an element of the window,
/// so that constant values sum to exact zeros).
template <typename T, typename Value>
__device__ void stage_rows(const PatchView<T>& window, T origin, const PatchRectangle& rectangle, int pitch,
                           Running<Value>* shared) {
  const auto [y, x, rows, columns] = rectangle;
  constexpr int chunk = 2 * warp_size;  ///< columns, two per lane
  const int lane = threadIdx.x % warp_size, first_row = warp_index();
  for (int first = 0; first < columns; first += chunk) {
    const int left = x + first + 2 * lane;
    const bool left_exists = left >= window.x0 && left < window.x1;
    const bool right_exists = left + 1 >= window.x0 && left + 1 < window.x1;
    Running<Value>* line = shared + first_row * pitch + 1 + first;
    const T* pixels = window.row(y + first_row) + left;
    for (int row = first_row; row < rows; row += warps, line += warps * pitch) {
      const bool row_exists = y + row >= window.y0 && y + row < window.y1;
      const auto value_at = [&](bool exists, int i) {
        return exists && row_exists ? static_cast<Value>(pixels[i]) - static_cast<Value>(origin) : Value{0};
      };
      const Value a = value_at(left_exists, 0), b = value_at(right_exists, 1);
      Running<Value> sums{a + b, a * a + b * b};
#pragma unroll
      for (int offset = 1; offset < warp_size; offset *= 2) {
        const Value sum = __shfl_up_sync(all_lanes, sums.sum, offset);
        const Value squares = __shfl_up_sync(all_lanes, sums.squares, offset);
        if (lane >= offset) sums.sum += sum, sums.squares += squares;
      }
      const Running<Value> before = first > 0 ? line[0] : Running<Value>{0, 0};  // by this warp's last lane
      sums.sum += before.sum, sums.squares += before.squares;
      const Running<Value> left_sums{sums.sum - b, sums.squares - b * b};
      if (first == 0 && lane == 0) line[0] = before;
      if (first + 2 * lane < columns)
        *reinterpret_cast<RunningPair<Value>*>(line + 2 * lane + 1) = {left_sums, sums};
      pixels = reinterpret_cast<const T*>(reinterpret_cast<const char*>(pixels) + warps * window.row_bytes);
    }
    __syncwarp();
  }
}

/// Adds to the running sums of each row those of the rows above.
template <typename Value>
__device__ void sum_down(int rows, int columns, int pitch, Running<Value>* shared) {
  constexpr int at_once = 4;  ///< rows that are loaded before any is stored
  for (int column = threadIdx.x; column < columns; column += threads) {
    Running<Value>* line = shared + 2 + column;
    Running<Value> total{0, 0};
    for (int row = 0; row < rows; row += at_once, line += at_once * pitch) {
      Running<Value> next[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (row + k < rows) next[k] = line[k * pitch];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (row + k >= rows) break;
        total = {total.sum + next[k].sum, total.squares + next[k].squares};
        line[k * pitch] = total;
      }
    }
  }
}

/// Sums over the window under the elements that count, for the shifts of a thread.
template <typename Value, int kShifts>
class SumsUnderMask {
 public:
  static constexpr int count = kShifts;
  /// Sums at one shift.
  struct Sums {
    Value sum = 0, squares = 0;
    Value summed = 0;  ///< for floats: all squares that were added or subtracted
  };

  /// Takes the tile's shifts number `first`, first + step, ... for this thread.
  __device__ SumsUnderMask(const MaskedTiling& tiling, int first, int step, int shifts, int shifts_x)
      : used_((shifts + step - 1) / step) {
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const int shift = min(first + k * step, shifts - 1);
      at_[k] = shift / shifts_x * tiling.pitch + shift % shifts_x;
    }
  }

  /// Adds every `step`-th row of a band, beginning with `first`.
  __device__ void add_rows(const BandMemory<Value>& memory, int row_words, int pitch, int first, int step,
                           int rows) {
    for (int row = first; row < rows; row += step) {
      std::uint32_t before = 0, word = memory.bits[row * row_words];
      for (int w = 0; w < row_words; ++w) {
        const std::uint32_t after = w + 1 < row_words ? memory.bits[row * row_words + w + 1] : 0;
        const Running<Value>* const line = memory.running + row * pitch + w * warp_size + 1;
        // A run begins if the element before it does not count, and ends if the next one does not.
        for_each_bit(word & ~(word << 1 | before >> 31), [&](int bit) { add<-1>(line + bit); });
        for_each_bit(word & ~(word >> 1 | after << 31), [&](int bit) { add<1>(line + bit + 1); });
        before = word, word = after;
      }
    }
  }
  /// Adds all elements of a rectangle, from sums over rows and columns.
  __device__ void add_rectangle(const BandMemory<Value>& memory, int pitch, const Rectangle& rectangle) {
    const int above = (rectangle.y0 - 1) * pitch, last = (rectangle.y1 - 1) * pitch;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      if (k >= used_) break;
      const auto add_row = [&](int row, Value sign) {
        const Running<Value>* const line = memory.running + at_[k] + row + 1;
        sums_[k].sum += sign * (line[rectangle.x1].sum - line[rectangle.x0].sum);
        sums_[k].squares += sign * (line[rectangle.x1].squares - line[rectangle.x0].squares);
      };
      add_row(last, Value(1));
      if (at_[k] + above >= 0) add_row(above, Value(-1));
    }
  }
  /// Adds the other parts' sums at the thread's first shift, in part 0.
  __device__ void add_parts(int parts, Sums* sums_by_thread) {
    if (parts == 1) return;
    sums_by_thread[threadIdx.x] = sums_[0];
    __syncthreads();
    for (int i = threadIdx.x + threads / parts; i < threads; i += threads / parts) {
      sums_[0].sum += sums_by_thread[i].sum;
      sums_[0].squares += sums_by_thread[i].squares;
      sums_[0].summed += sums_by_thread[i].summed;
    }
    __syncthreads();  // the memory is used again
  }
  template <typename T>
  __device__ Moments<T> moments(int k, std::int64_t n, T origin) const {
    return moments_of<T>(n, sums_[k].sum, sums_[k].squares, sums_[k].summed, origin);
  }

 private:
  template <typename Body>
  __device__ static void for_each_bit(std::uint32_t bits, Body&& body) {
    for (; bits != 0; bits &= bits - 1) body(__ffs(static_cast<int>(bits)) - 1);
  }
  template <int kSign>
  __device__ void add(const Running<Value>* running) {
#pragma unroll
    for (int k = 0; k < count; ++k) {
      if (k >= used_) break;
      const Running<Value> here = running[at_[k]];
      sums_[k].sum += Value(kSign) * here.sum;
      sums_[k].squares += Value(kSign) * here.squares;
      if constexpr (std::is_floating_point_v<Value>) sums_[k].summed += here.squares;
    }
  }

  int used_;       ///< largest number of shifts of a thread
  int at_[count];  ///< offsets of the shifts among the running sums of a band
  Sums sums_[count];
};

}  // namespace dic::kernels::masked
