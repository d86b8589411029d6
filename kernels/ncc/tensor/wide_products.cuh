#pragma once

#include "ncc/tensor/u8_products.cuh"

/// Sums of products of elements wider than a byte on tensor cores. Shifts become a matrix product as in
/// u8_products.cuh; the window and the reference lie in shared memory with two elements of 16 bits per word.
///
/// ExactProducts splits every element into its bytes on the way to the registers: four u8 products, of which
/// the two mixed ones are added in one sum. HalfProducts takes elements as half floats: one product of half
/// the depth. SplitProducts (split_products.cuh) is for floats.
///
/// Each class defines what a lane loads: a Quad of the window for each product of a column, and a Patch of
/// the reference for all of them:
///     WindowColumn                 take(Quad&), see u8_products.cuh
///     TailColumn                   take(Quad&) for the tail, if a tail is a product of every step
///     ReferenceColumn              take(Patch&), one step ahead
///     multiply_add(tiles, patch)   multiplies; tiles(f) calls f(sums, quad) for all products
///     Sums::end_part               is called after every `tiles` steps
namespace dic::kernels {

using u16 = std::uint16_t;

/// Loads two words as load() does.
__device__ inline uint2 load_pair(unsigned shared) {
  uint2 words;
  asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "r"(shared));
  return words;
}

/// Exact sums of up to 33,025 products of 16-bit elements: 2 * 33,025 * 255 * 255 < 2^32.
struct ExactProducts {
  using Element = u16;
  using Pair = Word;
  static constexpr int most_elements = 33025;
  static constexpr int elements_per_step = 8;    ///< along q
  static constexpr int elements_per_member = 4;  ///< elements of a row that a lane holds
  /// The window is read from an element that is a multiple of this; the remainder is added to B.
  static constexpr int alignment = 4;
  static constexpr bool rounds = false;
  /// The least stride of window rows of `words` at which the loads of a warp have no bank conflict.
  static int spread(int words) {
    int stride = round_up(words, 4);
    while (stride % 32 != 12 && stride % 32 != 20) stride += 4;
    return stride;
  }

  using Product = std::uint64_t;
  struct Quad {
    Word low[4], high[4];

    /// Puts the bytes of two words into operand i. Every operand gets a register of its own. Bytes that two
    /// products need are picked twice, by selectors that differ by a zero unknown to the compiler: otherwise
    /// it would keep one register, and copy it in every step.
    __device__ void put(int i, uint2 words, Word zero = 0) {
      low[i] = pick_bytes(words.x, words.y, 0x6420u + zero);
      high[i] = pick_bytes(words.x, words.y, 0x7531u + zero);
    }
  };
  struct Patch {
    Word low[2], high[2];

    __device__ void put(int i, const Word (&words)[3], int bit_shift) {
      const Word a = __funnelshift_r(words[0], words[1], bit_shift);
      const Word b = __funnelshift_r(words[1], words[2], bit_shift);
      low[i] = __byte_perm(a, b, 0x6420);
      high[i] = __byte_perm(a, b, 0x7531);
    }
  };
  struct Sums {
    Word low[4] = {}, mixed[4] = {}, high[4] = {};

    __device__ void end_part() {}
    __device__ Product product(int i) const {
      return (Product{high[i]} << 16) + (Product{mixed[i]} << 8) + low[i];
    }
  };

  struct WindowColumn {
    unsigned at, two_rows;  ///< address; distance of two rows, bytes
    Word zero;
    uint2 last;

    __device__ WindowColumn(unsigned first, int stride, Word runtime_zero)
        : at(first), two_rows(8 * stride), zero(runtime_zero), last(load_pair(at)) {}
    __device__ void take(Quad& quad) {
      const uint2 middle = load_pair(at + two_rows);
      quad.put(0, last, zero);
      quad.put(1, middle);
      quad.put(2, middle, zero);
      at += 2 * two_rows;
      last = load_pair(at);
      quad.put(3, last);
    }
  };
  struct ReferenceColumn {
    unsigned at, two_rows;  ///< address; distance of two rows, bytes
    int bit_shift;
    Word next[2][3];  ///< rows 0 and 2: words that hold a lane's elements at any shift

    __device__ ReferenceColumn(unsigned first, int stride, int shift)
        : at(first), two_rows(8 * stride), bit_shift(shift) {
      load_next();
    }
    __device__ void take(Patch& patch) {
      patch.put(0, next[0], bit_shift);
      patch.put(1, next[1], bit_shift);
      load_next();
    }

   private:
    __device__ void load_next() {
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        next[0][i] = load(at + 4 * i);
        next[1][i] = load(at + two_rows + 4 * i);
      }
      at += 2 * two_rows;
    }
  };

  /// Multiplies. Products that are added to the same sum are far from each other, so that none waits for the
  /// previous one.
  template <typename ForEachTile>
  __device__ static void multiply_add(ForEachTile&& for_each_tile, const Patch& reference) {
    for_each_tile([&](Sums& sums, const Quad& window) {
      multiply(sums.mixed, window.low, reference.high[0], reference.high[1]);
    });
    for_each_tile([&](Sums& sums, const Quad& window) {
      multiply(sums.low, window.low, reference.low[0], reference.low[1]);
    });
    for_each_tile([&](Sums& sums, const Quad& window) {
      multiply(sums.mixed, window.high, reference.low[0], reference.low[1]);
    });
    for_each_tile([&](Sums& sums, const Quad& window) {
      multiply(sums.high, window.high, reference.high[0], reference.high[1]);
    });
  }

 private:
  __device__ static Word pick_bytes(Word a, Word b, Word selector) {
    Word bytes;
    asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(selector));
    return bytes;
  }
};

__device__ inline void multiply(float (&sums)[4], const Word (&a)[4], const Word (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Products of half floats, summed as floats. Shared memory has two copies of the reference, the second moved
/// by one element, so that a lane reads whole words at any shift.
struct HalfProducts {
  using Element = u16;
  using Pair = Word;
  static constexpr int elements_per_step = 4;
  static constexpr int elements_per_member = 2;
  static constexpr int alignment = 2;
  static constexpr bool rounds = true;
  /// The least stride of window rows of `words` at which the loads of a warp have at most two-way bank
  /// conflicts.
  static int spread(int words) { return round_up(words + 4, 8) - 4; }

  using Product = float;
  using Quad = Word[4];
  using Patch = Word[2];
  struct Sums {
    float of[4] = {};

    __device__ void end_part() {}
    __device__ Product product(int i) const { return of[i]; }
    __device__ void add(const Sums& other) {
#pragma unroll
      for (int i = 0; i < 4; ++i) of[i] += other.of[i];
    }
  };
  using WindowColumn = kernels::WindowColumn;
  struct ReferenceColumn {
    unsigned upper, lower, four_rows;  ///< addresses of rows 0 and 2; distance of four rows, bytes
    Patch next;

    __device__ ReferenceColumn(unsigned first, int stride, int /*bit_shift*/)
        : upper(first), lower(first + 8 * stride), four_rows(16 * stride) {
      load_next();
    }
    __device__ void take(Patch& patch) {
      patch[0] = next[0], patch[1] = next[1];
      load_next();
    }

   private:
    __device__ void load_next() {
      next[0] = load(upper), next[1] = load(lower);
      upper += four_rows;
      lower += four_rows;
    }
  };

  template <typename ForEachTile>
  __device__ static void multiply_add(ForEachTile&& for_each_tile, const Patch& reference) {
    for_each_tile([&](Sums& sums, const Quad& window) { multiply(sums.of, window, reference); });
  }
};

/// The first operands of a lane, as pairs of elements in shared memory (see multiply_window of
/// u8_products.cuh).
template <typename Pair>
struct WideLaneStart {
  const Pair *window, *tail, *reference;
  int bit_shift;  ///< shift of the reference
};
/// A range of q, in pairs: every `step`-th from `first` to `end`.
struct Stretch {
  int first, end, step;
};

/// The k loop of one warp over a range of q. The known strides are compile-time constants; 0: the strides of
/// the layout.
template <typename Products, int tiles, bool has_tail, int known_window_stride, int known_reference_stride>
__device__ void multiply_columns(const ProductLayout& k, const WideLaneStart<typename Products::Pair>& lane,
                                 const Stretch& stretch, typename Products::Sums (&sums)[tiles + has_tail]) {
  const int window_stride = known_window_stride > 0 ? known_window_stride : k.window_stride;
  const int reference_stride = known_reference_stride > 0 ? known_reference_stride : k.reference_stride;
  const auto address_of = [](const auto* pair) {
    return shared_address(reinterpret_cast<const Word*>(pair));
  };
  for (int q = stretch.first; q < stretch.end; q += stretch.step) {
    typename Products::WindowColumn column(address_of(lane.window + q), window_stride, k.rows % 4);
    typename Products::ReferenceColumn patch(address_of(lane.reference + q), reference_stride,
                                             lane.bit_shift);
    const auto begin_tail = [&] {
      if constexpr (has_tail)
        return typename Products::TailColumn(address_of(lane.tail + q), window_stride);
      else
        return 0;
    };
    [[maybe_unused]] auto tail_column = begin_tail();
    typename Products::Quad quads[tiles];
#pragma unroll
    for (int t = 0; t < tiles; ++t) column.take(quads[t]);
    const auto end_part = [&] {
#pragma unroll
      for (typename Products::Sums& tile_sums : sums) tile_sums.end_part();
    };
    const auto step = [&](int u) {
      typename Products::Patch reference_patch;
      patch.take(reference_patch);
      [[maybe_unused]] typename Products::Quad tail_quad;
      if constexpr (has_tail) tail_column.take(tail_quad);
      Products::multiply_add(
          [&](auto&& multiply_tile) {
#pragma unroll
            for (int t = 0; t < tiles; ++t) multiply_tile(sums[t], quads[(u + t) % tiles]);
            if constexpr (has_tail) multiply_tile(sums[tiles], tail_quad);
          },
          reference_patch);
      column.take(quads[u]);
      if (u == tiles - 1) end_part();
    };
    repeat_steps<tiles>(k.rows / 4, step);
    if (k.rows / 4 % tiles != 0) end_part();
  }
}

}  // namespace dic::kernels
