#pragma once

#include "ncc/stage_patch.cuh"

/// Exact sums of u8 products on tensor cores (mma m16n8k32, u8 x u8 -> s32; sums wrap modulo 2^32 as they
/// should).
///
/// Write a shift as dx = 4 A + B, dy = 2 a + b with 0 <= B < 4, 0 <= b < 2, and move (b, B) to the reference:
///
///     c[dy, dx] = sum over p, q of ref[p - b, q - B] * window[p + 2 a, q + 4 A]
///
/// This is a matrix product over k = (p, q): its left matrix has the rows m = (A, a) and holds words of the
/// window that are never shifted by less than a word; its right matrix has the columns n = (b, B) and holds
/// the small reference, shifted by bytes with one funnel shift. One product computes 8 A x 4 B = 32 columns
/// by 2 a x 2 b = 4 rows of shifts. Elements beyond the reference are zero in shared memory, so that the
/// window may hold any value there. The byte at which the window begins in its word is added to B.
///
/// A step takes k = 4 rows (p) x 2 words (q). A lane then needs the window at rows p, p + 2, p + 4 for one
/// product, at p + 4, p + 6, p + 8 for the product 4 shifts further down, and the next step begins at p + 4:
/// operands stay in registers for the next product, and a step loads 2 words of the window. If the number of
/// words is odd, steps of the last word take 8 rows: a lane then has the word 4 rows further down instead of
/// the next word in the row.
namespace dic::kernels {

constexpr int columns_per_warp = 32;  ///< shifts along x
constexpr int rows_per_tile = 4;      ///< shifts along y of one product

/// Layout of the operands in shared memory.
struct ProductLayout {
  int rows = 0, words = 0;                      ///< upper limits of (p, q); rows in whole steps of 2 words
  int window_stride = 0, reference_stride = 0;  ///< words from row to row
};

/// Operands that a lane holds, as the instruction defines it: row m = group of A, column n = group of B, and
/// word `word` of the rows `parity` and parity + 2 of a step.
struct FragmentLane {
  int group, word, parity;

  __device__ explicit FragmentLane(int lane) : group(lane / 4), word(lane % 2), parity(lane % 4 / 2) {}
};

__device__ inline void multiply(Word (&sums)[4], const Word (&a)[4], Word b0, Word b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Loads a word; the compiler does not move the load: it would gather the loads of several steps, and run out
/// of registers.
__device__ inline Word load(unsigned shared) {
  Word word;
  asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(word) : "r"(shared));
  return word;
}

/// Walks down a lane's column of the window. A product needs rows 0, 2, 2, 4, and row 4 is row 0 of the next
/// product. A word that is needed twice is copied by adding `zero`, a zero that the compiler does not know:
/// otherwise it would keep one register, and copy that in every step to where the instruction needs it.
struct WindowColumn {
  unsigned row_2, row_4, four_rows;  ///< addresses of rows 2 and 4; distance of four rows, bytes
  Word zero, last;

  __device__ WindowColumn(unsigned first, int stride, Word runtime_zero)
      : row_2(first + 8 * stride),
        row_4(first + 16 * stride),
        four_rows(16 * stride),
        zero(runtime_zero),
        last(load(first)) {}
  __device__ void take(Word (&quad)[4]) {
    quad[0] = last + zero;
    quad[1] = load(row_2);
    quad[2] = quad[1] + zero;
    quad[3] = last = load(row_4);
    row_2 += four_rows;
    row_4 += four_rows;
  }
};
/// Walks down a lane's column of the reference, and loads one step ahead.
struct ReferenceColumn {
  unsigned upper, lower, step;  ///< addresses of rows 0 and 2; length of a step, bytes
  int bit_shift;
  Word next[4];

  __device__ ReferenceColumn(unsigned first, int stride, int rows_a_step, int shift)
      : upper(first), lower(first + 8 * stride), step(4 * rows_a_step * stride), bit_shift(shift) {
    load_next();
  }
  __device__ void take(Word& b0, Word& b1) {
    b0 = __funnelshift_r(next[0], next[1], bit_shift);
    b1 = __funnelshift_r(next[2], next[3], bit_shift);
    load_next();
  }

 private:
  __device__ void load_next() {
    next[0] = load(upper), next[1] = load(upper + 4);
    next[2] = load(lower), next[3] = load(lower + 4);
    upper += step;
    lower += step;
  }
};

/// Walks down the window for the tail: rows of neighbouring lanes are 2 apart, the two rows of a lane 16.
struct TailColumn {
  unsigned upper, lower, two_rows, step;  ///< addresses of a lane's rows; distances, bytes

  __device__ TailColumn(unsigned first, int stride, int rows_a_step = 4)
      : upper(first), lower(first + 64 * stride), two_rows(8 * stride), step(4 * rows_a_step * stride) {}
  __device__ void take(Word (&quad)[4]) {
    quad[0] = load(upper), quad[1] = load(lower);
    quad[2] = load(upper + two_rows), quad[3] = load(lower + two_rows);
    upper += step;
    lower += step;
  }
};

/// The first operands of a lane, as addresses in shared memory. Rows: parity (window), 2 group + parity
/// (tail), parity - group % 2 (reference). Words: group + word, word, and word minus the shift of the
/// reference, whose remainder is bit_shift (modulo 32).
struct LaneAddresses {
  unsigned window, tail, reference;
  int bit_shift;

  __device__ LaneAddresses further(int words) const {
    return {window + 4 * words, tail + 4 * words, reference + 4 * words, bit_shift};
  }
  /// Addresses for steps of one word, in which the second word of a lane is 4 rows further down.
  __device__ LaneAddresses for_one_word(int lane_word, int window_stride, int reference_stride) const {
    const unsigned in_window = 4 * lane_word * (4 * window_stride - 1);
    return {window + in_window, tail + in_window, reference + 4 * lane_word * (4 * reference_stride - 1),
            bit_shift};
  }
};

/// Calls step(i) `steps` times, with i = 0, 1, .. tiles - 1, 0, 1, .. known at compile time.
template <int tiles, typename Step>
__device__ void repeat_steps(int steps, Step&& step) {
  for (; steps >= tiles; steps -= tiles) {
#pragma unroll
    for (int i = 0; i < tiles; ++i) step(i);
  }
#pragma unroll
  for (int i = 0; i + 1 < tiles; ++i) {
    if (i >= steps) break;
    step(i);
  }
}

/// Does the steps of `words` (2 or 1) words. The instruction needs its operands in neighbouring registers:
/// they stay there, and the tile that uses them changes from step to step.
template <int words, int tiles, bool has_tail>
__device__ void multiply_words(int rows, int window_stride, int reference_stride, Word runtime_zero,
                               const LaneAddresses& start, Word (&sums)[tiles + has_tail][4]) {
  constexpr int rows_a_step = 8 / words, quads_a_step = rows_a_step / rows_per_tile;
  WindowColumn column(start.window, window_stride, runtime_zero);
  ReferenceColumn patch(start.reference, reference_stride, rows_a_step, start.bit_shift);
  [[maybe_unused]] TailColumn tail_column(start.tail, window_stride, rows_a_step);
  Word quads[tiles][4];
#pragma unroll
  for (int t = 0; t < tiles; ++t) column.take(quads[t]);
  const auto step = [&](int u) {
    const int first = u * quads_a_step;
    Word b0, b1;
    patch.take(b0, b1);
#pragma unroll
    for (int t = 0; t < tiles; ++t) multiply(sums[t], quads[(first + t) % tiles], b0, b1);
    if constexpr (has_tail) {
      Word quad[4];
      tail_column.take(quad);
      multiply(sums[tiles], quad, b0, b1);
    }
#pragma unroll
    for (int i = 0; i < quads_a_step; ++i) column.take(quads[(first + i) % tiles]);
  };
  repeat_steps<tiles>((rows + rows_a_step - 1) / rows_a_step, step);
}

/// The k loop of one warp, over k.words words; takes_odd_words: the number may be odd. Strides that are known
/// at compile time save the arithmetic of addresses; 0: they are those of the layout.
template <int tiles, bool has_tail, bool takes_odd_words, int known_window_stride = 0,
          int known_reference_stride = 0>
__device__ void multiply_window(const ProductLayout& k, const LaneAddresses& start,
                                Word (&sums)[tiles + has_tail][4]) {
  const int window_stride = known_window_stride > 0 ? known_window_stride : k.window_stride;
  const int reference_stride = known_reference_stride > 0 ? known_reference_stride : k.reference_stride;
  const Word zero = k.rows % 4;
  LaneAddresses at = start;
  const unsigned last_word = start.reference + 4 * (k.words - 1);
  for (; at.reference < last_word; at = at.further(2))
    multiply_words<2, tiles, has_tail>(k.rows, window_stride, reference_stride, zero, at, sums);
  if (!takes_odd_words || at.reference > last_word) return;
  at = at.for_one_word(threadIdx.x % 2, window_stride, reference_stride);
  multiply_words<1, tiles, has_tail>(k.rows, window_stride, reference_stride, zero, at, sums);
}

}  // namespace dic::kernels
