#pragma once

#include "ncc/tensor_shares.cuh"
#include "ncc/u8_products.cuh"
#include "ncc/u8_sums.cuh"

/// Exact sums of u8 products on sparse tensor cores (mma.sp m16n8k64, u8 x u8 -> s32): twice as many elements
/// in a product as without sparsity, in 1.4 times the time.
///
/// 16 shifts along x of one row of a reference are a Toeplitz matrix: row m holds the reference from column m
/// on, between zeros. For references of up to 32 elements, of the columns k and k + 32 at most one is not
/// zero. Two such pairs side by side are what the hardware calls 2:4 sparse: it stores one element of each
/// pair and two bits that say which. What is stored in row m is
///
///     ref[(k - m) mod 32],    k = 0 .. 31,    that of column k where k >= m, else of column k + 32,
///
/// the reference's row turned by m; the bits are the same for all references. A window that begins at any
/// byte of a chunk of 16 turns it by that much more, and need not be realigned. The dense factor holds pairs
/// of window columns, k and k + 32: a product computes 16 x 8 shifts of a reference's row, and nothing is
/// wasted but the 32nd element where references have 31.
///
/// Shift (dx, dy) = (16 b + m, lines e + c): a product has the row m and the column n = 2 e + b, so that 4
/// rows of the window, at two columns each, make its dense factor. Then the window's rows s, s + lines, ..
/// serve every row of the reference from s - lines + 1 to s, and what a lane loads of them stays in registers
/// for so long.
namespace dic::kernels {

constexpr int sparse_period = 32;  ///< columns of a reference, at most
constexpr int sparse_block = 16;   ///< shifts along x of its rows; twice as many of its rows and columns
constexpr int sparse_rows = 4;     ///< shifts along y of one product
/// Bytes in a row of what is copied: 5 chunks hold all 64 columns that 33 shifts need, 3 those of a
/// reference.
constexpr int window_box = 5 * chunk_bytes, reference_box = 3 * chunk_bytes;
/// Of a row of operands in shared memory, in words: padded so that lanes find their rows in other banks.
constexpr int paired_words = 28, turned_words = 36;

__device__ inline void multiply_sparse(Word (&sums)[4], const Word (&a)[4], const uint4& b, Word which) {
  asm("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y), "r"(b.z), "r"(b.w), "r"(which));
}

/// Stays where it is, as load() does.
__device__ inline uint4 load_quad(unsigned shared) {
  uint4 quad;
  asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(quad.x), "=r"(quad.y), "=r"(quad.z), "=r"(quad.w)
               : "r"(shared));
  return quad;
}

/// Words by which a box must lie behind the operands that are made of it, so that these only take the place
/// of rows that all lanes have read.
__host__ __device__ constexpr int words_before_window_box(int rows) {
  return round_up(rows, warp_size) * (paired_words - window_box / 4) + warp_size * window_box / 4;
}
/// Pairs up the columns of a window: byte 2 i of a row of operands is that of column i, byte 2 i + 1 that of
/// column i + 32, for i = 0 .. 47. For one warp.
__device__ inline void pair_columns(const Word* box, int rows, Word* operands) {
  const auto low = [](Word left, Word right) { return __byte_perm(left, right, 0x5140); };
  const auto high = [](Word left, Word right) { return __byte_perm(left, right, 0x7362); };
  const int lane = thread_of_block();
  const auto* chunks = reinterpret_cast<const uint4*>(box) + lane * (window_box / chunk_bytes);
  auto* pairs = reinterpret_cast<uint4*>(operands + lane * paired_words);
#pragma unroll 1
  for (int row = lane; row - lane < rows; row += warp_size) {
    if (row < rows) {
      const uint4 of_row[5]{chunks[0], chunks[1], chunks[2], chunks[3], chunks[4]};
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        const uint4 left = of_row[i], right = of_row[i + 2];
        pairs[2 * i] = {low(left.x, right.x), high(left.x, right.x), low(left.y, right.y),
                        high(left.y, right.y)};
        pairs[2 * i + 1] = {low(left.z, right.z), high(left.z, right.z), low(left.w, right.w),
                            high(left.w, right.w)};
      }
    }
    __syncwarp();  // the next rows of operands may take the place of these rows of the box
    chunks += warp_size * window_box / chunk_bytes;
    pairs += warp_size * paired_words / 4;
  }
}

/// Which bytes of a row of a reference exist.
struct RowMask {
  Word words[sparse_period / 4];

  explicit RowMask(int width) {
    for (int i = 0; i < sparse_period; ++i) {
      if (i % 4 == 0) words[i / 4] = 0;
      if (i < width) words[i / 4] |= 0xffu << i % 4 * 8;
    }
  }
};

/// Turns the rows of a reference that begins at byte `offset` of its box: word p of a row of operands holds
/// its elements p, p + 1, p + 8 and p + 9, modulo 32. The box may lie at the end of the operands. Returns the
/// sums over it. For one warp.
__device__ inline ReferenceSums turn_reference(const Word* box, int rows, unsigned offset,
                                               const RowMask& mask, Word* operands) {
  ReferenceSums sums{0, 0};
  const int lane = thread_of_block();
  const Word* raw = box + lane * (reference_box / 4) + offset / 4;
  auto* turned = reinterpret_cast<uint4*>(operands + lane * turned_words);
#pragma unroll 1
  for (int row = lane; row - lane < rows; row += warp_size) {
    Word words[8];
    if (row < rows) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        words[i] = __funnelshift_r(raw[i], raw[i + 1], 8 * offset) & mask.words[i];
        sums.sum = dot(words[i], 0x01010101u, sums.sum);
        sums.squares = dot(words[i], words[i], sums.squares);
      }
    }
    __syncwarp();
    if (row < rows) {
      const auto from = [&](int byte) {
        return __funnelshift_r(words[byte / 4 % 8], words[(byte / 4 + 1) % 8], 8 * (byte % 4));
      };
      const auto word = [&](int p) { return __byte_perm(from(p), from(p + 8), 0x5410); };
#pragma unroll
      for (int i = 0; i < 8; ++i)
        turned[i] = {word(4 * i), word(4 * i + 1), word(4 * i + 2), word(4 * i + 3)};
    }
    raw += warp_size * reference_box / 4;
    turned += warp_size * turned_words / 4;
  }
  return {__reduce_add_sync(0xffffffffu, sums.sum), __reduce_add_sync(0xffffffffu, sums.squares)};
}

/// For a row that is turned by 0 .. 31, which column of each pair its elements are of: 16 elements a word, by
/// the instruction's definition, and with columns numbered so that a lane's pairs lie side by side.
struct WhichColumns {
  Word of_turn[sparse_period];

  /// For one warp.
  __device__ void fill() {
    Word which = 0;
    for (int i = 0; i < 16; ++i) {
      const unsigned column = 8 * (i / 2 % 4) + 2 * (i / 8) + i % 2;
      which |= (2 * (i % 2) + (column < threadIdx.x)) << 2 * i;
    }
    of_turn[threadIdx.x] = which;
  }
  /// half: 1 for the 16 elements whose columns are 4 further right.
  __device__ Word operator()(unsigned turn, unsigned half) const {
    return of_turn[max(static_cast<int>(turn - 4 * half), 0)];
  }
};
/// What a lane holds of a product whose row r of 16 is turned by turn + r * turn_a_row: addresses in a row of
/// turned words, in bytes, and which column of each pair is meant.
struct TurnedLane {
  unsigned first[4];
  Word which;

  __device__ TurnedLane(const WhichColumns& columns, unsigned turn, unsigned turn_a_row) {
    const unsigned thread = thread_of_block(), group = thread / 4, t = thread % 4;
    const unsigned column = 64 * (t % 2) + 8 * (t / 2) - 4 * (turn + turn_a_row * group);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      first[i] = (column + 16 * (i / 2) - 32 * turn_a_row * (i % 2)) % (4 * sparse_period);
    which = columns(turn + turn_a_row * (group + 8 * (t % 2)), t / 2);
  }
};

/// The sums of products of 32 columns by 4 * lines rows of shifts. One row more, where it is wanted, is the
/// last of line `lines`.
template <int lines, bool has_row>
struct SparseSums {
  static constexpr int held = lines + has_row;
  Word of[held][4] = {};
};

/// `window`, `reference`: where operands begin. lane: 1 turn a row.
template <int lines, bool has_row>
__device__ void multiply_rows(unsigned window, unsigned reference, int rows, const TurnedLane& lane,
                              SparseSums<lines, has_row>& sums) {
  constexpr int held = SparseSums<lines, has_row>::held;
  const unsigned thread = thread_of_block();
  unsigned at[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) at[i] = reference + lane.first[i];
  unsigned next = window + 4 * paired_words * lines * (thread / 8) + 2 * sparse_block * (thread / 4 % 2) +
                  16 * (thread % 4);
  const auto load_pairs = [&] {
    const uint4 pairs = load_quad(next);
    next += 4 * paired_words;
    return pairs;
  };
  uint4 pairs[held];
#pragma unroll
  for (int i = 0; i < held - 1; ++i) pairs[i] = load_pairs();
  take_turns<held>(rows, [&](int u) {
    pairs[(u + held - 1) % held] = load_pairs();
    Word a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[i] = load(at[i]);
      at[i] += 4 * turned_words;
    }
#pragma unroll
    for (int c = 0; c < held; ++c) multiply_sparse(sums.of[c], a, pairs[(u + c) % held], lane.which);
  });
}

/// Hands the sums of all lines to the lanes by their columns, in the order of their rows. exchange: 512 bytes
/// a line of shared memory. For one warp.
template <int lines, int held>
__device__ void give_columns(const Word (&sums)[held][4], uint4* exchange, Word (&of_column)[4 * lines]) {
  // In the order of a product's sums, a lane has the columns group, + 16, + 8 and + 24 of row lines * (lane %
  // 4)
  // + c: what 4 lanes have of a column goes to one chunk.
  const unsigned lane = thread_of_block(), column = lane % 8 + lane / 16 * 8 + lane / 8 % 2 * 16;
  const auto first = static_cast<unsigned>(__cvta_generic_to_shared(exchange + column));
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
    of_column[c] = rows.x, of_column[lines + c] = rows.y;
    of_column[2 * lines + c] = rows.z, of_column[3 * lines + c] = rows.w;
  }
  __syncwarp();
}

/// The sums of products of column 32 of the shifts: of row 32 - lane, and of the first row. Rows of the
/// reference meet rows of the window, and the sum of a shift lies on a diagonal of that product. lane: 16
/// turns more, the same for all rows.
__device__ inline void multiply_column(unsigned window, unsigned reference, int rows, const TurnedLane& lane,
                                       Word& of_lane, Word& first) {
  constexpr int window_step = 4 * paired_words, reference_step = 4 * turned_words;
  const unsigned thread = thread_of_block();
  unsigned at = reference + thread / 4 * reference_step;
  unsigned from = window + thread / 4 * window_step + 2 * sparse_block + 16 * (thread % 4);
  // Element (row, column) of tile i belongs to shift 8 (5 - i) + column - row.
  Word tiles[6][4] = {};
  for (int y = 0; y < rows; y += 16) {
    Word a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = load(at + 8 * (i % 2) * reference_step + lane.first[i]);
#pragma unroll
    for (int i = 0; i < 6; ++i)
      multiply_sparse(tiles[5 - i], a, load_quad(from + 8 * i * window_step), lane.which);
    at += 16 * reference_step;
    from += 16 * window_step;
  }
  sum_diagonals(tiles, of_lane, first);
}

}  // namespace dic::kernels
