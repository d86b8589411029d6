#pragma once

#include <algorithm>

#include "ncc/scoring/scoring.cuh"
#include "ncc/tensor/u8_products.cuh"

// Scores of few shifts of u8, exact. A block is one warp and computes a pair from shared memory. A lane loads
// its words of a row once and keeps them in registers for all shifts.
//
// A product on tensor cores (m16n8k32) multiplies 16 rows of the window, moved by dx, with 8 rows of the
// reference, 32 columns of both. The product of row m and row n belongs to the shift dy = m - n. All steps of
// 8 rows add to the same sums, and in the end the sums of their diagonals are those for dy = 0 .. 8. The
// lower 8 of the 16 rows are the upper 8 of the next step.
//
// Sums over the window at neighbouring shifts differ by the rows and columns at its edges: `steps` holds
// these differences in x and y, which are added up at the end.
namespace dic::kernels::few {

constexpr int step_rows = 8, step_columns = 32;
constexpr int most_shifts = 9;                ///< along an axis
constexpr int most_shared_bytes = 64 * 1024;  ///< excludes the Surface; all devices have this much

/// Sum and sum of squares of bytes, or differences of such sums, modulo 2^32.
struct alignas(8) ByteSums {
  Word sum, squares;

  __device__ void add(Word bytes) {
    sum = __dp4a(bytes, 0x01010101u, sum);
    squares = __dp4a(bytes, bytes, squares);
  }
  __device__ void add(const ByteSums& other) {
    sum += other.sum;
    squares += other.squares;
  }
  __device__ void subtract(const ByteSums& other) {
    sum -= other.sum;
    squares -= other.squares;
  }
  __device__ void add_over_warp() {
    sum = __reduce_add_sync(all_lanes, sum);
    squares = __reduce_add_sync(all_lanes, squares);
  }
  /// Adds over the lanes whose numbers differ only in the bits first, 2 first .. last.
  __device__ void add_over_lanes(int first, int last) {
#pragma unroll
    for (int bit = first; bit <= last; bit *= 2)
      add({__shfl_xor_sync(all_lanes, sum, bit), __shfl_xor_sync(all_lanes, squares, bit)});
  }
  __device__ Moments<u8> moments(int n) const { return {sum, squares, centred<u8>(n, squares, sum, sum)}; }
};

/// Range of shifts at which the reference lies in the window.
struct DefinedShifts {
  int first_x, last_x, first_y, last_y;

  __device__ bool holds(int x, int y) const {
    return x >= first_x && x <= last_x && y >= first_y && y <= last_y;
  }
};

/// Layout of patches in shared memory: as in the image, beginning with any byte of the first chunk. Bytes
/// beyond them are read, but not written; their value does not matter.
struct StagedLayout {
  int rows, stride, chunks;

  StagedLayout(int read_rows, int width, int read_width)
      : rows(read_rows), stride(0), chunks(most_chunks(width)) {
    stride = std::max(chunks * chunk_bytes, round_up(chunk_bytes + read_width, chunk_bytes)) / 4;
    if (stride % 8 == 0) stride += 4;  // 8 neighbouring rows of 4 words then have no bank conflict
  }
  __host__ __device__ int words() const { return rows * stride; }
};
struct Layout {
  StagedLayout window, reference;
  Divisor cells;  ///< chunks per row of the window, which is wider than the reference

  explicit Layout(const NccJob& job)
      : window(round_up(job.reference.height, step_rows) + step_rows,
               job.reference.width + job.shifts.nx() - 1, round_up(job.reference.width, step_columns) + 16),
        reference(round_up(job.reference.height, step_rows), job.reference.width,
                  round_up(job.reference.width, step_columns)),
        cells(window.chunks) {}
  int bytes() const { return static_cast<int>(sizeof(Word)) * (window.words() + reference.words()); }
};

/// A reference and the part of its window that its shifts cover, in shared memory.
struct Staged {
  const Word* words;
  int stride, byte;  ///< stride of rows; byte of the first element in a row

  __device__ const u8* element(int row, int column) const {
    return reinterpret_cast<const u8*>(words + row * stride) + byte + column;
  }
};
struct Pair {
  Staged reference, window;
  int h, w, nx, ny;
};

/// Reads words of a row, 4 columns each; advance() moves to the 8th row after it.
class RowWords {
 public:
  __device__ RowWords(const Staged& matrix, int row, int column)
      : at_(matrix.words + row * matrix.stride + (matrix.byte + column) / 4),
        step_(step_rows * matrix.stride),
        shift_(8 * (matrix.byte % 4)) {}
  template <int count>
  __device__ void load(int first, Word (&words)[count]) const {
    Word raw[count + 1];
#pragma unroll
    for (int i = 0; i <= count; ++i) raw[i] = at_[first + i];
#pragma unroll
    for (int i = 0; i < count; ++i) words[i] = __funnelshift_r(raw[i], raw[i + 1], shift_);
  }
  __device__ void advance() { at_ += step_; }

 private:
  const Word* at_;
  int step_, shift_;
};

/// A lane's two words of a row of the window, 16 columns apart, at every dx.
template <int shifts>
struct ShiftedWords {
  Word at[2][shifts];

  __device__ void load(const RowWords& window) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Word words[(shifts + 2) / 4 + 1];
      window.load(4 * half, words);
#pragma unroll
      for (int dx = 0; dx < shifts; ++dx)
        at[half][dx] =
            dx % 4 == 0 ? words[dx / 4] : __funnelshift_r(words[dx / 4], words[dx / 4 + 1], 8 * (dx % 4));
    }
  }
};

/// Sums of a lane. Lane (group, place) has the rows group + 8 i, and in a step of columns the words `place`
/// and place + 4.
template <int shifts>
struct LaneSums {
  static constexpr int edges = (shifts + 2) / 4;
  ByteSums reference{};
  ByteSums first{};              ///< sums over the window at the first shift
  ByteSums down{};               ///< change from shift row `group` to the next one, at dx = 0
  ByteSums right[edges]{};       ///< change from dx = place + 4 i to the next one, at dy = 0
  ByteSums down_right[edges]{};  ///< change of `right` from shift row `group` to the next one
};

template <int shifts>
__device__ void multiply(const Pair& pair, LaneSums<shifts>& sums, Word (&products)[shifts][4]) {
  const int lane = threadIdx.x % warp_size, group = lane / 4;
  for (int first_column = 0; first_column < pair.w; first_column += step_columns) {
    const int column = first_column + 4 * (lane % 4);
    const Word exist[]{low_bytes(pair.w - column), low_bytes(pair.w - column - 16)};
    RowWords reference(pair.reference, group, column);
    RowWords window(pair.window, group, column);
    ShiftedWords<shifts> upper, lower;
    upper.load(window);
    ByteSums top{};
#pragma unroll
    for (int i = 0; i < 2; ++i) top.add(upper.at[i][0] & exist[i]);
    sums.down.subtract(top);
#pragma unroll 2
    for (int row = 0; row < pair.h; row += step_rows) {
      window.advance();
      lower.load(window);
      Word words[2][1];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        reference.load(4 * i, words[i]);
        const Word mask = row + group < pair.h ? exist[i] : 0;
        words[i][0] &= mask;
        sums.reference.add(words[i][0]);
        sums.first.add(upper.at[i][0] & mask);
      }
      reference.advance();
#pragma unroll
      for (int dx = 0; dx < shifts; ++dx)
        kernels::multiply(products[dx], {upper.at[0][dx], lower.at[0][dx], upper.at[1][dx], lower.at[1][dx]},
                          words[0][0], words[1][0]);
      upper = lower;
    }
    const RowWords below(pair.window, pair.h + group, column);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      Word words[1];
      below.load(4 * i, words);
      sums.down.add(words[0] & exist[i]);
    }
  }
}

template <int shifts>
__device__ void sum_edges(const Pair& pair, LaneSums<shifts>& sums) {
  const int lane = threadIdx.x % warp_size, group = lane / 4;
#pragma unroll
  for (int i = 0; i < sums.edges; ++i) {
    const int left = lane % 4 + 4 * i;
    if (left >= pair.nx - 1) continue;
    const auto change = [&](int row) -> ByteSums {
      const u8* const at = pair.window.element(row, left);
      const Word gone = at[0], come = at[pair.w];
      return {come - gone, come * come - gone * gone};
    };
#pragma unroll 2
    for (int row = 0; row < pair.h; row += step_rows)
      if (row + group < pair.h) sums.right[i].add(change(row + group));
    if (group >= pair.ny - 1) continue;
    sums.down_right[i] = change(pair.h + group);
    sums.down_right[i].subtract(change(group));
  }
}

/// Shared memory of a warp: sums and scores of a pair.
template <int shifts>
struct Surface {
  static constexpr int diagonal_step = step_rows + 1;
  Word products[shifts][16 * step_rows + 2];  ///< the size leaves a gap between the banks of two dx
  ByteSums steps[most_shifts][most_shifts];
  float scores[most_shifts * shifts];  ///< undefined beyond the job's shifts

  __device__ void store(const Word (&sums)[shifts][4]) {
    const int lane = threadIdx.x % warp_size;
#pragma unroll
    for (int dx = 0; dx < shifts; ++dx) {
      auto* const pairs = reinterpret_cast<uint2*>(products[dx]);
      pairs[lane] = {sums[dx][0], sums[dx][1]};
      pairs[lane + warp_size] = {sums[dx][2], sums[dx][3]};
    }
  }
  /// Computes the sums over the window at every shift from those of the lanes.
  __device__ void sum_windows(const Pair& pair, LaneSums<shifts>& sums) {
    const int lane = threadIdx.x % warp_size, group = lane / 4, place = lane % 4;
    sums.first.add_over_warp();
    sums.down.add_over_lanes(1, 2);
    if (lane == 0) steps[0][0] = sums.first;
    if (place == 0) steps[group + 1][0] = sums.down;
#pragma unroll
    for (int i = 0; i < sums.edges; ++i) {
      sums.right[i].add_over_lanes(4, 16);
      const int x = place + 4 * i + 1;
      if (group == 0) steps[0][x] = sums.right[i];
      steps[group + 1][x] = sums.down_right[i];
    }
    __syncwarp();
    if (lane < pair.ny) {
#pragma unroll
      for (int x = 1; x < shifts; ++x) steps[lane][x].add(steps[lane][x - 1]);
    }
    __syncwarp();
    if (lane < shifts) {
      ByteSums sum = steps[0][lane];
#pragma unroll 1
      for (int y = 1; y < pair.ny; ++y) {
        sum.add(steps[y][lane]);
        steps[y][lane] = sum;
      }
    }
    __syncwarp();
  }
  __device__ Word product(int x, int y) const {
    Word sum = 0;
#pragma unroll
    for (int n = 0; n < step_rows; ++n) sum += products[x][y * step_rows + n * diagonal_step];
    return sum;
  }
};

template <int shifts>
__device__ void score_shifts(const Pair& pair, const DefinedShifts& defined, Criterion criterion,
                             const Moments<u8>& reference, Surface<shifts>& surface) {
  const int n = pair.h * pair.w;
#pragma unroll 1
  for (int i = threadIdx.x % warp_size; i < shifts * pair.ny; i += warp_size) {
    const int y = i / shifts, x = i % shifts;
    const bool exists = x < pair.nx && defined.holds(x, y);
    surface.scores[i] =
        exists ? score<u8>(criterion, n, surface.product(x, y), reference, surface.steps[y][x].moments(n))
               : undefined;
  }
  __syncwarp();
}

/// Copies pairs to the warp's shared memory, and scores their shifts.
template <int shifts>
class PairScores {
 public:
  /// Uses layout.bytes() bytes of `shared`; surface receives the scores.
  __device__ PairScores(const JobView& view, const Layout& layout, Word* shared, Surface<shifts>& surface)
      : view_(view),
        layout_(layout),
        window_words_(shared),
        reference_words_(shared + layout.window.words()),
        surface_(surface) {}

  /// Sets the reference of all following pairs: its first h x w elements, at most those of the view.
  __device__ void take_reference(const DevicePatches& references, std::int64_t index, int h, int w) {
    const auto reference = load_patch<u8>(references, index);
    h_ = h;
    w_ = w;
    reference_byte_ = stage_window(references, reference, index, {0, 0, h, w}, ChunkCells(layout_.cells),
                                   layout_.reference.stride, reference_words_);
  }
  __device__ void score(const DevicePatches& windows, std::int64_t index, Criterion criterion) {
    const auto window = load_patch<u8>(windows, index);
    const int window_byte = stage_window(windows, window, index,
                                         {view_.dy_min, view_.dx_min, h_ + view_.ny - 1, w_ + view_.nx - 1},
                                         ChunkCells(layout_.cells), layout_.window.stride, window_words_);
    wait_for_copies();
    __syncwarp();
    const Pair pair{{reference_words_, layout_.reference.stride, reference_byte_},
                    {window_words_, layout_.window.stride, window_byte},
                    h_,
                    w_,
                    view_.nx,
                    view_.ny};
    LaneSums<shifts> sums;
    Word products[shifts][4] = {};
    multiply(pair, sums, products);
    surface_.store(products);
    sum_edges(pair, sums);
    surface_.sum_windows(pair, sums);
    sums.reference.add_over_warp();
    const DefinedShifts defined{window.x0 - view_.dx_min, window.x1 - w_ - view_.dx_min,
                                window.y0 - view_.dy_min, window.y1 - h_ - view_.dy_min};
    score_shifts(pair, defined, criterion, sums.reference.moments(h_ * w_), surface_);
  }

 private:
  const JobView& view_;
  const Layout& layout_;
  Word *window_words_, *reference_words_;
  Surface<shifts>& surface_;
  int h_ = 0, w_ = 0, reference_byte_ = 0;
};

/// Number of pairs that a block processes one after the other.
inline int pairs_of_block(std::int64_t pairs) {
  constexpr std::int64_t several_waves = 16000;  // with fewer pairs, some warps of an H100 would have none
  return pairs < several_waves ? 1 : 4;
}

}  // namespace dic::kernels::few
