#pragma once

#include <cuda_fp16.h>

#include "ncc/u8_products.cuh"

/// Sums of products of 16-bit elements on tensor cores. Shifts become a matrix product as u8_products.cuh
/// says; the window and the reference lie in shared memory as they lie in the picture, two elements to a
/// word, and are turned into operands on their way to the registers.
///
/// ExactProducts split every element into its bytes: four u8 products, of which the two mixed ones share a
/// sum. HalfProducts take pictures of up to 12 bit as half floats, in one product of half the depth.
namespace dic::kernels {

using u16 = std::uint16_t;

/// Two selected bytes of each word, in a register of its own: the compiler would keep an operand that two
/// products want once, and move it between them in every step.
template <unsigned selector>
__device__ Word pick_bytes(Word a, Word b) {
  Word bytes;
  asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "n"(selector));
  return bytes;
}
__device__ inline Word low_bytes_of(Word a, Word b) { return pick_bytes<0x6420>(a, b); }
__device__ inline Word high_bytes_of(Word a, Word b) { return pick_bytes<0x7531>(a, b); }

/// Sums modulo 2^64 of products that hold up to 33,025 elements, 16 bit each: 2 * 33,025 * 255 * 255 < 2^32.
struct ExactProducts {
  static constexpr int most_elements = 33025;
  static constexpr int elements_per_step = 8;    ///< along q
  static constexpr int elements_per_member = 4;  ///< what a lane holds of a row
  /// What the reference is shifted by, beside B: the elements between the window's first and the word group
  /// it lies in.
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

  __device__ Raw load_window(unsigned at) const {
    Raw words;
    asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "r"(at));
    return words;
  }
  __device__ void put(Quad& quad, int i, const Raw& words) const {
    quad.low[i] = low_bytes_of(words.x, words.y);
    quad.high[i] = high_bytes_of(words.x, words.y);
  }
  static constexpr int reference_words = 3;  ///< that hold a lane's elements at any shift
  __device__ void put(Patch& patch, int i, const Word (&words)[3], int bit_shift) const {
    const Word a = __funnelshift_r(words[0], words[1], bit_shift);
    const Word b = __funnelshift_r(words[1], words[2], bit_shift);
    patch.low[i] = low_bytes_of(a, b);
    patch.high[i] = high_bytes_of(a, b);
  }
  __device__ static void multiply_add(Sums& sums, const Quad& window, const Patch& reference) {
    multiply(sums.low, window.low, reference.low[0], reference.low[1]);
    multiply(sums.mixed, window.low, reference.high[0], reference.high[1]);
    multiply(sums.mixed, window.high, reference.low[0], reference.low[1]);
    multiply(sums.high, window.high, reference.high[0], reference.high[1]);
  }
};

/// Products of reference elements, which are half floats already, and window elements less half their range.
/// As half floats without an exponent, bits of the element stand for multiples of 2^-24; the tensor cores
/// take them as they are.
struct HalfProducts {
  static constexpr int most_bits = 12;  ///< differences from the middle of the range then fit 11 bits
  static constexpr int elements_per_step = 4;
  static constexpr int elements_per_member = 2;
  static constexpr int alignment = 2;
  static constexpr float unit = 1.0f / (1 << 24);  ///< of the sums

  using Product = float;
  struct Quad {
    Word half[4];
  };
  using Patch = Quad;
  struct Sums {
    float sums[4] = {};

    __device__ Product product(int i) const { return sums[i]; }
  };
  /// element - middle = below - less.
  struct Raw {
    Word below, less;
  };

  Word middle_bit;  ///< of both elements of a word

  __device__ explicit HalfProducts(int middle) : middle_bit(static_cast<Word>(middle) * 0x10001u) {}

  __device__ Raw load_window(unsigned at) const {
    const Word elements = load(at);
    return {elements & (middle_bit - 0x10001u), ~elements & middle_bit};
  }
  __device__ void put(Quad& quad, int i, const Raw& raw) const {
    asm volatile("sub.f16x2 %0, %1, %2;" : "=r"(quad.half[i]) : "r"(raw.below), "r"(raw.less));
  }
  static constexpr int reference_words = 2;
  __device__ void put(Patch& patch, int i, const Word (&words)[2], int bit_shift) const {
    patch.half[i] = __funnelshift_r(words[0], words[1], bit_shift);
  }
  __device__ static void multiply_add(Sums& sums, const Quad& window, const Patch& reference) {
    const auto& a = window.half;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(sums.sums[0]), "+f"(sums.sums[1]), "+f"(sums.sums[2]), "+f"(sums.sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(reference.half[0]), "r"(reference.half[1]));
  }
};

/// Walks down a lane's column of the window: what one product needs is at rows 0, 2, 2, 4.
template <typename Products>
class WindowColumn16 {
 public:
  __device__ WindowColumn16(const Products& products, const Word* first, int stride)
      : products_(products),
        at_(shared_address(first)),
        two_rows_(8 * stride),
        last_(products.load_window(at_)) {}
  __device__ void take(typename Products::Quad& quad) {
    products_.put(quad, 0, last_);
    const auto middle = products_.load_window(at_ + two_rows_);
    products_.put(quad, 1, middle);
    products_.put(quad, 2, middle);
    at_ += 2 * two_rows_;
    last_ = products_.load_window(at_);
    products_.put(quad, 3, last_);
  }

 private:
  const Products& products_;
  unsigned at_, two_rows_;  ///< in bytes
  typename Products::Raw last_;
};

/// Walks down a lane's column of the reference, one step ahead.
template <typename Products>
class ReferenceColumn16 {
 public:
  __device__ ReferenceColumn16(const Products& products, const Word* first, int stride, int bit_shift)
      : products_(products), at_(shared_address(first)), two_rows_(8 * stride), bit_shift_(bit_shift) {
    load_next();
  }
  __device__ void take(typename Products::Patch& patch) {
    products_.put(patch, 0, next_[0], bit_shift_);
    products_.put(patch, 1, next_[1], bit_shift_);
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

  const Products& products_;
  unsigned at_, two_rows_;  ///< in bytes
  int bit_shift_;
  Word next_[2][Products::reference_words];
};

/// The window for the tail: the lane's rows are 2 apart from the next lane's, and 16 from its own second one.
template <typename Products>
class TailColumn16 {
 public:
  __device__ TailColumn16(const Products& products, const Word* first, int stride)
      : products_(products), at_(shared_address(first)), two_rows_(8 * stride) {}
  __device__ void take(typename Products::Quad& quad) {
    products_.put(quad, 0, products_.load_window(at_));
    products_.put(quad, 1, products_.load_window(at_ + 8 * two_rows_));
    products_.put(quad, 2, products_.load_window(at_ + two_rows_));
    products_.put(quad, 3, products_.load_window(at_ + 9 * two_rows_));
    at_ += 2 * two_rows_;
  }

 private:
  const Products& products_;
  unsigned at_, two_rows_;  ///< in bytes
};

/// Where a lane begins, in words of shared memory (see multiply_window of u8_products.cuh).
struct LaneStart {
  const Word *window, *tail, *reference;
  int bit_shift;  ///< of the reference
};

/// The k loop of one warp, over every `parts`-th step along q from `part` on.
template <typename Products, int tiles, bool has_tail>
__device__ void multiply_window16(const Products& products, const ProductLayout& k, const LaneStart& lane,
                                  int part, int parts, typename Products::Sums (&sums)[tiles + has_tail]) {
  constexpr int step = Products::elements_per_step / 2;  // in words
  for (int q = part * step; q < k.words; q += parts * step) {
    WindowColumn16<Products> column(products, lane.window + q, k.window_stride);
    ReferenceColumn16<Products> patch(products, lane.reference + q, k.reference_stride, lane.bit_shift);
    [[maybe_unused]] TailColumn16<Products> tail_column(products, lane.tail + q, k.window_stride);
    typename Products::Quad quads[tiles];
#pragma unroll
    for (int t = 0; t < tiles; ++t) column.take(quads[t]);
    int p = 0;
    const auto turn = [&] {
#pragma unroll
      for (int u = 0; u < tiles; ++u) {
        typename Products::Patch of_reference;
        patch.take(of_reference);
#pragma unroll
        for (int t = 0; t < tiles; ++t) products.multiply_add(sums[t], quads[(u + t) % tiles], of_reference);
        if constexpr (has_tail) {
          typename Products::Quad quad;
          tail_column.take(quad);
          products.multiply_add(sums[tiles], quad, of_reference);
        }
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
