#pragma once

#include <cuda/std/bit>

#include "ncc/tensor/block_shifts.cuh"
#include "ncc/tensor/u8_products.cuh"
#include "ncc/tensor/u8_sums.cuh"

/// Exact sums of u8 products on sparse tensor cores (mma.sp m16n8k64, u8 x u8 -> s32): twice as many elements
/// per product as without sparsity, in 1.4 times the time.
///
/// 16 shifts along x of one row of a reference are a Toeplitz matrix: row m holds the reference, beginning at
/// column m, between zeros. For references of up to 32 elements, at most one of the columns k and k + 32 is
/// not zero. Two such pairs side by side are what the hardware calls 2:4 sparse: it stores one element of
/// each pair and two bits that say which. The elements stored in row m are
///
///     ref[(k - m) mod 32],    k = 0 .. 31,    that of column k if k >= m, otherwise of column k + 32,
///
/// which is the reference's row rotated by m; the bits are the same for all references. A window that begins
/// at byte b of 8 rotates it further by b, so that the window need not be realigned; a reference that begins
/// at byte b of its chunk rotates it back by b. The dense factor holds pairs of window columns, k and k + 32:
/// a product computes 16 x 8 shifts for a row of the reference.
///
/// Shift (dx, dy) = (m + 8 b, lines e + c), m = 0 .. 7 and 16 .. 23: a product has the row m and the column n
/// = 2 e + b, so that 4 rows of the window, at two columns each, make its dense factor. Then the window's
/// rows s, s + lines, .. are used for the rows s - lines + 1 .. s of the reference, and stay in a lane's
/// registers meanwhile. The values of the reference that a lane holds for m also serve m + 16.
namespace dic::kernels {

constexpr int sparse_period = 32;  ///< largest number of columns of a reference
constexpr int sparse_block = 8;    ///< shifts along x of half the rows of a product
constexpr int sparse_rows = 4;     ///< shifts along y of one product
/// Bytes in a row of the boxes that are copied: 5 chunks hold the 64 columns that 33 shifts need, 3 the row
/// of a reference.
constexpr int window_box = 5 * chunk_bytes, reference_box = 3 * chunk_bytes;
/// Strides of rows of operands in shared memory, in words: padded against bank conflicts.
constexpr int paired_words = 28, rotated_words = 36;
/// Rows that a warp converts in one pass: it loads them all before it stores any.
constexpr int window_rows_per_pass = 2 * warp_size, reference_rows_per_pass = warp_size;

/// Computes sums = before + a b.
__device__ inline void multiply_sparse(Word (&sums)[4], const Word (&a)[4], const uint4& b, Word which,
                                       const Word (&before)[4]) {
  asm("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9,%10,%11}, {%13,%14,%15,%16}, %12, 0x0;"
      : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y), "r"(b.z), "r"(b.w), "r"(which),
        "r"(before[0]), "r"(before[1]), "r"(before[2]), "r"(before[3]));
}
__device__ inline void multiply_sparse(Word (&sums)[4], const Word (&a)[4], const uint4& b, Word which,
                                       bool are_first) {
  constexpr Word none[4] = {0, 0, 0, 0};
  are_first ? multiply_sparse(sums, a, b, which, none) : multiply_sparse(sums, a, b, which, sums);
}

/// Loads four words; the compiler does not move the load, see load().
__device__ inline uint4 load_quad(unsigned shared) {
  uint4 quad;
  asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(quad.x), "=r"(quad.y), "=r"(quad.z), "=r"(quad.w)
               : "r"(shared));
  return quad;
}

/// Converts a row of a window from its box to operands: bytes 2 i and 2 i + 1 of a row of operands are those
/// of the columns i and i + 32, for i = 0 .. 47.
struct WindowRow {
  uint4 chunks[window_box / chunk_bytes];

  __device__ void load(const Word* box, int row) {
    const auto* const row_chunks = reinterpret_cast<const uint4*>(box) + row * (window_box / chunk_bytes);
#pragma unroll
    for (int i = 0; i < window_box / chunk_bytes; ++i) chunks[i] = row_chunks[i];
  }
  __device__ void store(Word* operands, int row) const {
    const auto low = [](Word left, Word right) { return __byte_perm(left, right, 0x5140); };
    const auto high = [](Word left, Word right) { return __byte_perm(left, right, 0x7362); };
    auto* const pairs = reinterpret_cast<uint4*>(operands + row * paired_words);
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const uint4 left = chunks[i], right = chunks[i + 2];
      pairs[2 * i] = {low(left.x, right.x), high(left.x, right.x), low(left.y, right.y),
                      high(left.y, right.y)};
      pairs[2 * i + 1] = {low(left.z, right.z), high(left.z, right.z), low(left.w, right.w),
                          high(left.w, right.w)};
    }
  }
};

/// Masks for rows of a reference, which lie in a ring of 32 bytes that begins with their first chunk,
/// `offset` bytes before the row. The end of the row wraps around to these bytes, which hold other elements
/// of the image.
struct RingMasks {
  Word folded[chunk_bytes][chunk_bytes / 4];  ///< bytes of the first chunk to which the end wraps, by offset
  Word exists[chunk_bytes][sparse_period / 4];  ///< all bytes of a row, by offset

  explicit RingMasks(int width) {
    const auto byte = [](int i) { return 0xffu << i % 4 * 8; };
    for (int offset = 0; offset < chunk_bytes; ++offset) {
      for (Word& word : folded[offset]) word = 0;
      for (Word& word : exists[offset]) word = 0;
      for (int i = 0; i < offset; ++i) folded[offset][i / 4] |= byte(i);
      for (int i = 0; i < width; ++i) exists[offset][(offset + i) % sparse_period / 4] |= byte(offset + i);
    }
  }
};

/// Selects the bytes of a word with its halves swapped.
constexpr Word swapped_halves = 0x1032;
__device__ inline Word swap_halves(Word word) { return __byte_perm(word, word, swapped_halves); }

/// Converts a row of a reference from its box to operands: word p of a row of operands holds its elements at
/// p, p + 1, p + 16 and p + 17 of the ring, modulo 32.
struct ReferenceRow {
  static constexpr int words = sparse_period / 4;
  Word ring[words];

  /// Loads a row of a reference that begins at byte `offset` of its box. exists: false for a row of zeros.
  __device__ void load(const Word* box, int row, bool exists, unsigned offset, const RingMasks& masks) {
    const auto* const chunks = reinterpret_cast<const uint4*>(box) + row * (reference_box / chunk_bytes);
    const uint4 first = chunks[0], second = chunks[1], third = chunks[2];
    const Word(&folded)[chunk_bytes / 4] = masks.folded[offset];
    const auto fold = [&](Word left, Word right, int i) { return (left & ~folded[i]) | (right & folded[i]); };
    ring[0] = fold(first.x, third.x, 0), ring[1] = fold(first.y, third.y, 1);
    ring[2] = fold(first.z, third.z, 2), ring[3] = fold(first.w, third.w, 3);
    ring[4] = second.x, ring[5] = second.y, ring[6] = second.z, ring[7] = second.w;
    const Word all = exists ? ~Word{0} : 0;
#pragma unroll
    for (int i = 0; i < words; ++i) ring[i] &= masks.exists[offset][i] & all;
  }
  __device__ void add_to(ReferenceSums& sums) const {
#pragma unroll
    for (int i = 0; i < words; ++i) {
      sums.sum = dot(ring[i], 0x01010101u, sums.sum);
      sums.squares = dot(ring[i], ring[i], sums.squares);
    }
  }
  __device__ void store(Word* operands, int row) const {
    constexpr int half = sparse_period / 2;
    auto* const rotated = reinterpret_cast<uint4*>(operands + row * rotated_words);
    Word word[half + 1];
#pragma unroll
    for (int i = 0; i < words / 2; ++i) {
      word[4 * i] = __byte_perm(ring[i], ring[i + words / 2], 0x5410);
      word[4 * i + 1] = __byte_perm(ring[i], ring[i + words / 2], 0x6521);
      word[4 * i + 2] = __byte_perm(ring[i], ring[i + words / 2], 0x7632);
    }
    word[half] = swap_halves(word[0]);
#pragma unroll
    for (int p = 0; p < half; p += 4) {
      word[p + 3] = __byte_perm(word[p + 2], word[p + 4], 0x6341);
      rotated[p / 4] = {word[p], word[p + 1], word[p + 2], word[p + 3]};
      rotated[(half + p) / 4] = {swap_halves(word[p]), swap_halves(word[p + 1]), swap_halves(word[p + 2]),
                                 swap_halves(word[p + 3])};
    }
  }
};

/// Sparsity bits for a row rotated by -4 .. 31 (below 0 as for 0): they say to which column of its pair each
/// element belongs. A word has 16 elements, in the instruction's order; columns are numbered so that the
/// pairs of a lane are neighbours.
struct WhichColumns {
  static constexpr int most_left = 4;
  Word by_rotation[most_left + sparse_period];

  /// Computes the bits. One warp must call it.
  __device__ void fill() {
    for (int rotation = threadIdx.x; rotation < most_left + sparse_period; rotation += warp_size) {
      Word which = 0;
      for (int i = 0; i < 16; ++i) {
        const int column = 16 * (i / 2 % 2) + 8 * (i / 4 % 2) + 2 * (i / 8) + i % 2;
        which |= (2 * (i % 2) + (column < rotation - most_left)) << 2 * i;
      }
      by_rotation[rotation] = which;
    }
  }
};
/// A lane's operands of the sparse factor: byte offsets in a row of rotated words, and sparsity bits.
struct RotatedLane {
  unsigned first[2];
  Word which;
};

/// Places of a lane's operands of both factors, packed into one register.
class SparseLane {
 public:
  /// Places for products in which row r of the sparse factor is rotated by r % 8 + 16 (r / 8).
  __device__ static SparseLane for_rows(int lines) {
    const unsigned group = thread_of_block() / 4;
    return {4 * paired_words * lines * (group / 2) + 2 * sparse_block * (group % 2), 1};
  }
  /// Places for products with 8 rows of the window, in which all rows of the sparse factor are rotated alike.
  /// A lane has two of the products' columns: they are 4 rows apart, so that lanes load from different banks.
  __device__ static SparseLane for_column() {
    const unsigned group = thread_of_block() / 4;
    return {4 * paired_words * (group / 2 + rows_apart * (group % 2)) + 2 * sparse_block, 0};
  }
  static constexpr int rows_apart = 4;
  /// Byte offset of the lane's first pairs of columns in the window.
  __device__ unsigned in_window() const { return packed_ >> 16; }
  /// Operands with `rotation` added, for a reference that begins at byte `offset` of its ring.
  __device__ RotatedLane rotated(const WhichColumns& columns, unsigned rotation, unsigned offset) const {
    const unsigned first = (packed_ >> 8) - 4 * (rotation - offset);
    return {{first % (4 * sparse_period), (first + 16) % (4 * sparse_period)},
            columns.by_rotation[packed_ % 256 + rotation]};
  }

 private:
  __device__ SparseLane(unsigned window_byte, unsigned rotation_per_row) {
    const unsigned thread = thread_of_block(), t = thread % 4, chunk = t % 2 * 2 + t / 2;
    const unsigned first = 32 * (t % 2) + 8 * (t / 2) - 4 * rotation_per_row * (thread / 4);
    // The second 16 elements of a row have columns 4 further right, which corresponds to a rotation by 4
    // less.
    const unsigned rotation =
        WhichColumns::most_left + rotation_per_row * (thread / 4 + 16 * (t % 2)) - 4 * (t / 2);
    packed_ = (window_byte + chunk_bytes * chunk) << 16 | first % (4 * sparse_period) << 8 | rotation;
  }

  unsigned packed_;
};

/// Sums of products at 32 columns by 4 * lines rows of shifts. has_row: one more row, the last of line
/// `lines`.
template <int lines, bool has_row>
struct SparseSums {
  static constexpr int held = lines + has_row;
  Word of[held][4];
};

/// Calls step(first), step(first + 1), .. `steps` times, fewer than 2 * most, with one branch per bit of that
/// number. most: a power of two.
template <int first, int most, typename Step>
__device__ void take_last_steps(int steps, Step&& step) {
  if constexpr (most > 0) {
    if (steps & most) {
#pragma unroll
      for (int i = 0; i < most; ++i) step(first + i);
      take_last_steps<first + most, most / 2>(steps, step);
    } else {
      take_last_steps<first, most / 2>(steps, step);
    }
  }
}

/// Multiplies all rows of the reference. `window`: place of the lane's first pairs; `reference`: start of the
/// operands. Two more rows lie below the reference. halves: swapped_halves, as a value that the compiler does
/// not know.
template <int lines, bool has_row>
__device__ void multiply_rows(unsigned window, unsigned reference, int rows, const RotatedLane& lane,
                              Word halves, SparseSums<lines, has_row>& sums) {
  constexpr int held = SparseSums<lines, has_row>::held;
  // The compiler would place the swap where it expects the load to be complete, and products would wait when
  // it is not. A false dependency on a sum of the previous row delays the swap; with fewer lines that sum
  // would come too late.
  constexpr bool swaps_late = lines >= 8;
  constexpr int rows_ahead = swaps_late ? 2 : 1;
  unsigned at[2]{reference + lane.first[0], reference + lane.first[1]};
  uint4 pairs[held];
  Word ahead[rows_ahead][2];
  const auto load_ahead = [&](int row) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 1; j < rows_ahead; ++j) ahead[j - 1][i] = ahead[j][i];
      ahead[rows_ahead - 1][i] = load(at[i] + row * 4 * rotated_words);
    }
  };
  const auto load_pairs = [&](int row) {
    pairs[(row + held) % held] = load_quad(window + row * 4 * paired_words);
  };
#pragma unroll
  for (int i = 0; i < rows_ahead; ++i) load_ahead(i);
#pragma unroll
  for (int i = 0; i < held - 1; ++i) load_pairs(i);
  const auto multiply_row = [&](int row, bool is_first) {
    load_pairs(row + held - 1);
    const auto swap = [&](Word word) {
      return swaps_late && !is_first ? __byte_perm(word, sums.of[held - 1][0], halves) : swap_halves(word);
    };
    const Word a[4]{ahead[0][0], swap(ahead[0][0]), ahead[0][1], swap(ahead[0][1])};
    load_ahead(row + rows_ahead);
#pragma unroll
    for (int c = 0; c < held; ++c)
      multiply_sparse(sums.of[c], a, pairs[(row + c + held) % held], lane.which, is_first);
  };
  multiply_row(0, true);
  int left = rows - 1;
  for (; left >= held; left -= held) {
    at[0] += held * 4 * rotated_words, at[1] += held * 4 * rotated_words, window += held * 4 * paired_words;
#pragma unroll
    for (int u = 1; u <= held; ++u) multiply_row(u - held, false);
  }
  take_last_steps<1, cuda::std::bit_floor(held - 1u)>(left, [&](int row) { multiply_row(row, false); });
}

/// Distributes the sums of all lines to the lanes, by columns, in the order of rows. exchange: 512 bytes of
/// shared memory for each line. One warp must call it.
template <int lines, int held>
__device__ void give_columns(const Word (&sums)[held][4], uint4* exchange, Word (&column_sums)[4 * lines]) {
  // In row lines * (lane % 4) + c, a lane has the columns group, + 8, + 16 and + 24: a chunk receives the 4
  // lanes' sums of a column.
  const unsigned lane = thread_of_block();
  const unsigned first = static_cast<unsigned>(__cvta_generic_to_shared(exchange + lane));
#pragma unroll
  for (int c = 0; c < lines; ++c)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
                     first + chunk_bytes * warp_size * c),
                 "r"(sums[c][0]), "r"(sums[c][1]), "r"(sums[c][2]), "r"(sums[c][3])
                 : "memory");
  __syncwarp();
#pragma unroll
  for (int c = 0; c < lines; ++c) {
    const uint4 rows = exchange[warp_size * c + lane];
    column_sums[c] = rows.x, column_sums[lines + c] = rows.y;
    column_sums[2 * lines + c] = rows.z, column_sums[3 * lines + c] = rows.w;
  }
  __syncwarp();
}

/// Computes the sums of products of column 32 of the shifts: in row 32 - lane, and in the first row. Rows of
/// the reference are multiplied with rows of the window, and the sum of a shift lies on a diagonal of that
/// product. `window`: place of the lane's first pairs.
__device__ inline void multiply_column(unsigned window, unsigned reference, int rows, const RotatedLane& lane,
                                       Word& lane_sum, Word& first) {
  constexpr int window_step = 4 * paired_words, reference_step = 4 * rotated_words;
  unsigned at = reference + thread_of_block() / 4 * reference_step;
  // Element (row, column) of tile i belongs to shift 8 (5 - i) + row of the column - row.
  Word tiles[6][4];
  const auto multiply_rows = [&](bool are_first) {
    Word a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = load(at + 8 * (i % 2) * reference_step + lane.first[i / 2]);
#pragma unroll
    for (int i = 0; i < 6; ++i)
      multiply_sparse(tiles[5 - i], a, load_quad(window + 8 * i * window_step), lane.which, are_first);
    at += 16 * reference_step;
    window += 16 * window_step;
  };
  multiply_rows(true);
#pragma unroll 1
  for (int y = 16; y < rows; y += 16) multiply_rows(false);
  sum_diagonals<SparseLane::rows_apart>(tiles, lane_sum, first);
}

}  // namespace dic::kernels
