#pragma once

#include "ncc/u8_shared.cuh"

/// Exact sums of u8 products on tensor cores (mma m16n8k32, u8 x u8 -> s32; sums wrap modulo 2^32 as they
/// should).
///
/// Write a shift as dx = 4 A + B, dy = 2 a + b with 0 <= B < 4, 0 <= b < 2, and move (b, B) to the reference:
///
///     c[dy, dx] = sum over p, q of ref[p - b, q - B] * window[p + 2 a, q + 4 A]
///
/// That is a matrix product over k = (p, q): its left matrix has the rows m = (A, a) and holds words of the
/// window that are never shifted by less than a word; its right matrix has the columns n = (b, B) and holds
/// the small reference, shifted by bytes with one funnel shift. One product computes 8 A x 4 B = 32 columns
/// by 2 a x 2 b = 4 rows of shifts. Elements beyond the reference are zero in shared memory; whatever the
/// window holds there does not count. The byte at which the window begins in its word adds to B.
///
/// A step takes k = 4 rows (p) x 2 words (q). Then a lane needs the window at rows p, p + 2, p + 4 for one
/// product, at p + 4, p + 6, p + 8 for the product 4 shifts further down, and the next step begins at p + 4:
/// what a product needs stays in registers for the next one, and a step loads 2 words of the window.
namespace dic::kernels {

constexpr int columns_per_warp = 32;  ///< shifts along x
constexpr int rows_per_tile = 4;      ///< shifts along y of one product

/// What lies in shared memory for the products.
struct ProductLayout {
  int rows = 0, words = 0;                      ///< extent of (p, q), rounded up to whole steps
  int window_stride = 0, reference_stride = 0;  ///< words from row to row
};

/// Where a lane's words lie, by the instruction's definition: its row m = group of A, its column n = group of
/// B, its words `word` of the rows `parity` and parity + 2 of a step.
struct FragmentLane {
  int group, word, parity;

  __device__ explicit FragmentLane(int lane) : group(lane / 4), word(lane % 2), parity(lane % 4 / 2) {}
};

__device__ inline void multiply(Word (&sums)[4], const Word (&a)[4], Word b0, Word b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// A load that stays what it is. The compiler would keep a word that two registers want once, and move it
/// between them in every step.
__device__ inline Word load(unsigned shared) {
  Word word;
  asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(word) : "r"(shared));
  return word;
}
__device__ inline unsigned shared_address(const Word* word) {
  return static_cast<unsigned>(__cvta_generic_to_shared(word));
}

/// Walks down a lane's column of the window: what one product needs is at rows 0, 2, 2, 4.
struct WindowColumn {
  unsigned at, two_rows;  ///< in bytes

  __device__ WindowColumn(const Word* first, int stride) : at(shared_address(first)), two_rows(8 * stride) {}
  __device__ void take(Word (&quad)[4]) {
    quad[0] = load(at);
    quad[1] = load(at + two_rows);
    quad[2] = load(at + two_rows);
    at += 2 * two_rows;
    quad[3] = load(at);
  }
};
/// Walks down a lane's column of the reference, one step ahead.
struct ReferenceColumn {
  unsigned at, two_rows;  ///< in bytes
  int byte_shift;
  Word next[4];

  __device__ ReferenceColumn(const Word* first, int stride, int shift)
      : at(shared_address(first)), two_rows(8 * stride), byte_shift(shift) {
    load_next();
  }
  __device__ void take(Word& b0, Word& b1) {
    b0 = __funnelshift_r(next[0], next[1], byte_shift);
    b1 = __funnelshift_r(next[2], next[3], byte_shift);
    load_next();
  }

 private:
  __device__ void load_next() {
    next[0] = load(at), next[1] = load(at + 4);
    next[2] = load(at + two_rows), next[3] = load(at + two_rows + 4);
    at += 2 * two_rows;
  }
};

/// The same for the tail: the lane's rows are 2 apart from the next lane's, and 16 from its own second one.
struct TailColumn {
  unsigned at, two_rows;  ///< in bytes

  __device__ TailColumn(const Word* first, int stride) : at(shared_address(first)), two_rows(8 * stride) {}
  __device__ void take(Word (&quad)[4]) {
    quad[0] = load(at), quad[1] = load(at + 8 * two_rows);
    quad[2] = load(at + two_rows), quad[3] = load(at + 9 * two_rows);
    at += 2 * two_rows;
  }
};

/// The k loop of one warp. `window`, `tail` and `reference` point at this lane's first words: rows
/// `parity`, 2 group + parity (tail), parity - group / 4 (reference), words group + word, word, word minus
/// the shift of the reference. The instruction wants its words in neighbouring registers: they stay where
/// they are and the tiles turn.
template <int tiles, bool has_tail>
__device__ void multiply_window(const ProductLayout& k, const Word* window, const Word* tail,
                                const Word* reference, int byte_shift, Word (&sums)[tiles + has_tail][4]) {
  for (int q = 0; q < k.words; q += 2) {
    WindowColumn column(window + q, k.window_stride);
    ReferenceColumn patch(reference + q, k.reference_stride, byte_shift);
    [[maybe_unused]] TailColumn tail_column(tail + q, k.window_stride);
    Word quads[tiles][4];
#pragma unroll
    for (int t = 0; t < tiles; ++t) column.take(quads[t]);
    int p = 0;
    const auto turn = [&] {
#pragma unroll
      for (int u = 0; u < tiles; ++u) {
        Word b0, b1;
        patch.take(b0, b1);
#pragma unroll
        for (int t = 0; t < tiles; ++t) multiply(sums[t], quads[(u + t) % tiles], b0, b1);
        if constexpr (has_tail) {
          Word quad[4];
          tail_column.take(quad);
          multiply(sums[tiles], quad, b0, b1);
        }
        p += 4;
        if (p >= k.rows) return false;
        column.take(quads[u]);
      }
      return true;
    };
    while (turn()) {
    }
  }
}

}  // namespace dic::kernels
