#pragma once

#include "ncc/u8_products.cuh"

/// Sums of products of 16-bit elements on tensor cores. Shifts become a matrix product as u8_products.cuh
/// says; the window and the reference lie in shared memory two elements to a word.
///
/// ExactProducts split every element into its bytes on the way to the registers: four u8 products, of which
/// the two mixed ones share a sum. HalfProducts take elements as half floats: one product of half the depth.
namespace dic::kernels {

using u16 = std::uint16_t;

/// Sums modulo 2^64 of products that hold up to 33,025 elements, 16 bit each: 2 * 33,025 * 255 * 255 < 2^32.
struct ExactProducts {
  static constexpr int most_elements = 33025;
  static constexpr int elements_per_step = 8;    ///< along q
  static constexpr int elements_per_member = 4;  ///< what a lane holds of a row
  /// The window is read from elements that are multiples of this; the rest adds to B.
  static constexpr int alignment = 4;

  using Product = std::uint64_t;
  struct Quad {
    Word low[4], high[4];
  };
  struct Patch {
    Word low[2], high[2];
  };
  struct Sums {
    Word low[4] = {}, mixed[4] = {}, high[4] = {};

    __device__ Product product(int i) const {
      return (Product{high[i]} << 16) + (Product{mixed[i]} << 8) + low[i];
    }
  };
  using Raw = uint2;
  static constexpr bool raw_is_operand = false;
  /// Window rows begin so many banks apart, or as many back, that a warp's loads meet no bank twice.
  static constexpr int banks_apart(bool /*tail*/) { return 12; }

  __device__ static Raw load_window(unsigned at) {
    Raw words;
    asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "r"(at));
    return words;
  }
  __device__ static void put(Quad& quad, int i, const Raw& words) {
    quad.low[i] = pick_bytes<0x6420>(words.x, words.y);
    quad.high[i] = pick_bytes<0x7531>(words.x, words.y);
  }
  static constexpr int reference_words = 3;  ///< that hold a lane's elements at any shift
  __device__ static void put(Patch& patch, int i, const Word (&words)[3], int bit_shift) {
    const Word a = __funnelshift_r(words[0], words[1], bit_shift);
    const Word b = __funnelshift_r(words[1], words[2], bit_shift);
    patch.low[i] = __byte_perm(a, b, 0x6420);
    patch.high[i] = __byte_perm(a, b, 0x7531);
  }
  /// for_each_tile(f) calls f(sums, window). Products that add up in one sum are far from each other, so that
  /// none waits for the one before.
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
  /// A register of its own for every operand: the compiler would keep one that two products want once, and
  /// move it between them in every step.
  template <unsigned selector>
  __device__ static Word pick_bytes(Word a, Word b) {
    Word bytes;
    asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "n"(selector));
    return bytes;
  }
};

/// Products of half floats, summed as floats.
struct HalfProducts {
  static constexpr int elements_per_step = 4;
  static constexpr int elements_per_member = 2;
  static constexpr int alignment = 2;

  using Product = float;
  struct Quad {
    Word half[4];
  };
  struct Patch {
    Word half[2];
  };
  struct Sums {
    float of[4] = {};

    __device__ Product product(int i) const { return of[i]; }
  };
  using Raw = Word;
  static constexpr bool raw_is_operand = true;
  static constexpr int banks_apart(bool tail) { return tail ? 12 : 16; }

  __device__ static Raw load_window(unsigned at) { return load(at); }
  __device__ static void put(Quad& quad, int i, Raw word) { quad.half[i] = word; }
  static constexpr int reference_words = 2;
  __device__ static void put(Patch& patch, int i, const Word (&words)[2], int bit_shift) {
    patch.half[i] = __funnelshift_r(words[0], words[1], bit_shift);
  }
  template <typename ForEachTile>
  __device__ static void multiply_add(ForEachTile&& for_each_tile, const Patch& reference) {
    for_each_tile([&](Sums& sums, const Quad& window) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
          "{%0,%1,%2,%3};"
          : "+f"(sums.of[0]), "+f"(sums.of[1]), "+f"(sums.of[2]), "+f"(sums.of[3])
          : "r"(window.half[0]), "r"(window.half[1]), "r"(window.half[2]), "r"(window.half[3]),
            "r"(reference.half[0]), "r"(reference.half[1]));
    });
  }
};

/// Walks down a lane's column of the window: what one product needs is at rows 0, 2, 2, 4. Where words become
/// operands as they are, each is loaded where it is wanted (see `load`).
template <typename Products>
class WindowColumn16 {
 public:
  __device__ WindowColumn16(const Word* first, int stride)
      : at_(shared_address(first)), two_rows_(8 * stride), last_(Products::load_window(at_)) {}
  __device__ void take(typename Products::Quad& quad) {
    const auto middle = Products::load_window(at_ + two_rows_);
    Products::put(quad, 1, middle);
    if constexpr (Products::raw_is_operand) {
      Products::put(quad, 0, Products::load_window(at_));
      Products::put(quad, 2, Products::load_window(at_ + two_rows_));
    } else {
      Products::put(quad, 0, last_);
      Products::put(quad, 2, middle);
    }
    at_ += 2 * two_rows_;
    last_ = Products::load_window(at_);
    Products::put(quad, 3, last_);
  }

 private:
  unsigned at_, two_rows_;  ///< in bytes
  typename Products::Raw last_;
};

/// Walks down a lane's column of the reference, one step ahead.
template <typename Products>
class ReferenceColumn16 {
 public:
  __device__ ReferenceColumn16(const Word* first, int stride, int bit_shift)
      : at_(shared_address(first)), two_rows_(8 * stride), bit_shift_(bit_shift) {
    load_next();
  }
  __device__ void take(typename Products::Patch& patch) {
    Products::put(patch, 0, next_[0], bit_shift_);
    Products::put(patch, 1, next_[1], bit_shift_);
    load_next();
  }

 private:
  __device__ void load_next() {
#pragma unroll
    for (int i = 0; i < Products::reference_words; ++i) {
      next_[0][i] = load(at_ + 4 * i);
      next_[1][i] = load(at_ + two_rows_ + 4 * i);
    }
    at_ += 2 * two_rows_;
  }

  unsigned at_, two_rows_;  ///< in bytes
  int bit_shift_;
  Word next_[2][Products::reference_words];
};

/// The window for the tail: the lane's rows are 2 apart from the next lane's, and 16 from its own second one.
template <typename Products>
class TailColumn16 {
 public:
  __device__ TailColumn16(const Word* first, int stride)
      : at_(shared_address(first)), two_rows_(8 * stride) {}
  __device__ void take(typename Products::Quad& quad) {
    Products::put(quad, 0, Products::load_window(at_));
    Products::put(quad, 1, Products::load_window(at_ + 8 * two_rows_));
    Products::put(quad, 2, Products::load_window(at_ + two_rows_));
    Products::put(quad, 3, Products::load_window(at_ + 9 * two_rows_));
    at_ += 2 * two_rows_;
  }

 private:
  unsigned at_, two_rows_;  ///< in bytes
};

/// Where a lane begins, in words of shared memory (see multiply_window of u8_products.cuh).
struct LaneStart {
  const Word *window, *tail, *reference;
  int bit_shift;  ///< of the reference
};

/// The k loop of one warp, over every `parts`-th step along q from `part` on.
template <typename Products, int tiles, bool has_tail>
__device__ void multiply_window16(const ProductLayout& k, const LaneStart& lane, int part, int parts,
                                  typename Products::Sums (&sums)[tiles + has_tail]) {
  constexpr int step = Products::elements_per_step / 2;  // in words
  for (int q = part * step; q < k.words; q += parts * step) {
    WindowColumn16<Products> column(lane.window + q, k.window_stride);
    ReferenceColumn16<Products> patch(lane.reference + q, k.reference_stride, lane.bit_shift);
    [[maybe_unused]] TailColumn16<Products> tail_column(lane.tail + q, k.window_stride);
    typename Products::Quad quads[tiles];
#pragma unroll
    for (int t = 0; t < tiles; ++t) column.take(quads[t]);
    int p = 0;
    const auto turn = [&] {
#pragma unroll
      for (int u = 0; u < tiles; ++u) {
        typename Products::Patch of_reference;
        patch.take(of_reference);
        [[maybe_unused]] typename Products::Quad of_tail;
        if constexpr (has_tail) tail_column.take(of_tail);
        Products::multiply_add(
            [&](auto&& multiply_tile) {
#pragma unroll
              for (int t = 0; t < tiles; ++t) multiply_tile(sums[t], quads[(u + t) % tiles]);
              if constexpr (has_tail) multiply_tile(sums[tiles], of_tail);
            },
            of_reference);
        p += rows_per_tile;
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
