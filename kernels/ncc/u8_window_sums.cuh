#pragma once

#include "ncc/u8_shared.cuh"

/// Sums of a reference, and of the window under it for every shift of a block, from shared memory: exact in
/// 32 bits up to 256 x 256 elements, because those of the window count as e - 128.
///
/// Shifts are counted in columns c from the window's first aligned word. The sums of the first row of shifts
/// come from column sums; further down a row leaves the reference and a row enters it, and what that changes
/// is computed for every row at once (a thread slides along its two rows) and added up by whoever walks down
/// a column of shifts.
namespace dic::kernels {

/// Of elements e - 128.
struct alignas(8) WindowSum {
  int sum, squares;

  __device__ void add(const WindowSum& other) {
    sum += other.sum;
    squares += other.squares;
  }
};

/// a * b + c in one instruction; the compiler would widen what stays the same in a loop, and multiply 64
/// bits.
__device__ inline std::int64_t multiply_add_wide(int a, int b, std::int64_t c) {
  std::int64_t sum;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(sum) : "r"(a), "r"(b), "l"(c));
  return sum;
}

/// Four elements of a window as e - 128.
__device__ inline Word about_128(Word elements) { return elements ^ 0x80808080u; }
/// sum + the products of signed bytes.
__device__ inline int dot(Word a, Word b, int sum) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}

/// Of a reference.
struct ReferenceSums {
  int sum;
  Word squares;
};
/// By every warp on its own; the zeros around the reference do not count. `memory` is all of `chunks`.
__device__ inline ReferenceSums sum_reference(const uint4* memory, int chunks) {
  Word sum = 0, squares = 0;
#pragma unroll 2
  for (int i = threadIdx.x % warp_size; i < chunks; i += warp_size) {
    const uint4 words = memory[i];
    for (const Word word : {words.x, words.y, words.z, words.w}) {
      sum = __dp4a(word, 0x01010101u, sum);
      squares = __dp4a(word, word, squares);
    }
  }
  constexpr unsigned all = 0xffffffffu;
  return {static_cast<int>(__reduce_add_sync(all, sum)), __reduce_add_sync(all, squares)};
}

/// out[k] = (a[k], b[k], c[k], d[k]).
__device__ inline void transpose_bytes(Word a, Word b, Word c, Word d, Word (&out)[4]) {
  const Word ab_low = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362);
  const Word cd_low = __byte_perm(c, d, 0x5140), cd_high = __byte_perm(c, d, 0x7362);
  out[0] = __byte_perm(ab_low, cd_low, 0x5410);
  out[1] = __byte_perm(ab_low, cd_low, 0x7632);
  out[2] = __byte_perm(ab_high, cd_high, 0x5410);
  out[3] = __byte_perm(ab_high, cd_high, 0x7632);
}

/// Sizes of two tables: changes[row][c] for the step from row to row + 1, and column sums.
struct WindowSumsLayout {
  int words = 0;   ///< of 4 columns c
  int stride = 0;  ///< of a row of changes, in elements; a pair of them is an odd number of 16 bytes away
  int rows = 0;    ///< of changes
  int column_words = 0;  ///< of 4 column sums

  WindowSumsLayout() = default;
  WindowSumsLayout(int shifts_x, int shifts_y, int width)
      : words((shifts_x + 3 + 3) / 4),
        stride(4 * words + 2),
        rows(shifts_y),
        column_words((shifts_x + 3 + width - 1 + 3) / 4) {}
  __host__ __device__ int changes() const { return rows * stride; }
  __host__ __device__ int columns() const { return 4 * column_words; }
};

__device__ inline void clear_columns(const WindowSumsLayout& layout, WindowSum* columns) {
  for (int i = threadIdx.x; i < layout.columns(); i += blockDim.x) columns[i] = {0, 0};
}
/// Adds to cleared column sums those over the first `height` rows. `window`: its first aligned word.
__device__ inline void sum_columns(const WindowSumsLayout& layout, const Word* window, int window_stride,
                                   int height, WindowSum* columns) {
  const Cells cells(layout.column_words);
  for (int word = cells.column(); word < layout.column_words; word += cells.columns_at_once()) {
    WindowSum sums[4] = {};
    for (int row = 4 * cells.row(); row < height; row += 4 * cells.rows_at_once()) {
      Word of_row[4], of_column[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        of_row[i] = row + i < height ? about_128(window[(row + i) * window_stride + word]) : 0;
      transpose_bytes(of_row[0], of_row[1], of_row[2], of_row[3], of_column);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[i].sum = dot(of_column[i], 0x01010101u, sums[i].sum);
        sums[i].squares = dot(of_column[i], of_column[i], sums[i].squares);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      WindowSum& out = columns[4 * word + i];
      atomicAdd(&out.sum, sums[i].sum);
      atomicAdd(&out.squares, sums[i].squares);
    }
  }
  __syncwarp();  // lanes without a word have gone ahead
}

/// changes[row][c] = the sums over c .. c + width - 1 of row + height, less those of row, for words begin ..
/// end - 1 of c. `leaving`: word 0 of `row`; `out`: changes[row].
__device__ inline void slide(const Word* leaving, const Word* entering, int width, int begin, int end,
                             WindowSum* out) {
  const int whole = width / 4, rest = width % 4;
  leaving += begin;
  entering += begin;
  WindowSum change{0, 0};
  int left = 0;
  const auto add = [&](Word in, Word gone) {
    change.sum = dot(gone, 0xffffffffu, dot(in, 0x01010101u, change.sum));
    change.squares = dot(in, in, change.squares);
    left = dot(gone, gone, left);
  };
#pragma unroll 2
  for (int i = 0; i < whole; ++i) add(about_128(entering[i]), about_128(leaving[i]));
  Word entering_last = entering[whole], leaving_last = leaving[whole];
  add(about_128(entering_last) & low_bytes(rest), about_128(leaving_last) & low_bytes(rest));
  change.squares -= left;

  for (int word = begin; word < end; ++word, ++entering, ++leaving) {
    const Word entering_next = entering[whole + 1], leaving_next = leaving[whole + 1];
    Word steps[4];  // of the row that enters: what enters, what leaves; of the row that leaves: the same
    transpose_bytes(about_128(__funnelshift_r(entering_last, entering_next, 8 * rest)), about_128(*entering),
                    about_128(__funnelshift_r(leaving_last, leaving_next, 8 * rest)), about_128(*leaving),
                    steps);
    entering_last = entering_next;
    leaving_last = leaving_next;
    WindowSum of_word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      of_word[i] = change;
      change.sum = dot(steps[i], 0x01ffff01u, change.sum);
      // -e * e = e * ~e + e, and ~e always fits a signed byte.
      change.squares = dot(steps[i], steps[i] ^ 0x00ffff00u, dot(steps[i], 0x00010100u, change.squares));
    }
    auto* const stored = reinterpret_cast<int4*>(out + 4 * word);
    stored[0] = {of_word[0].sum, of_word[0].squares, of_word[1].sum, of_word[1].squares};
    stored[1] = {of_word[2].sum, of_word[2].squares, of_word[3].sum, of_word[3].squares};
  }
}

/// The first `rows` rows of changes. A thread does a row, or a part of it where there are threads to spare.
__device__ inline void sum_changes(const WindowSumsLayout& layout, const Word* window, int window_stride,
                                   int height, int width, int rows, WindowSum* changes) {
  const int threads = static_cast<int>(blockDim.x);
  const int threads_per_part = min(round_up(max(rows, 1), warp_size), threads);
  const int words = (layout.words * threads_per_part + threads - 1) / threads;  // of a part
  const int begin = threadIdx.x / threads_per_part * words;
  for (int row = threadIdx.x % threads_per_part; row < rows; row += threads_per_part) {
    const Word* leaving = window + row * window_stride;
    slide(leaving, leaving + height * window_stride, width, begin, min(begin + words, layout.words),
          changes + row * layout.stride);
  }
}

/// The sums for column c of shift row `row`.
__device__ inline WindowSum sum_at(const WindowSumsLayout& layout, int c, int row, int width,
                                   const WindowSum* columns, const WindowSum* changes) {
  WindowSum sum{0, 0};
#pragma unroll 4
  for (int i = 0; i < width; ++i) sum.add(columns[c + i]);
#pragma unroll 4
  for (int i = 0; i < row; ++i) sum.add(changes[i * layout.stride + c]);
  return sum;
}

}  // namespace dic::kernels
