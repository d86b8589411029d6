#pragma once

#include "ncc/tensor/wide_products.cuh"

namespace dic::kernels {

/// Products of floats (see wide_products.cuh), each the sum of two half floats: high x high and the two mixed
/// ones; low x low is left out. A pair of elements lies in two words of the reference, the high halves first;
/// two pairs of the window lie in four words, the high halves first in even rows, the low halves first in odd
/// rows, so that lanes with odd rows have no bank conflict with the others. After every `tiles` steps the
/// sums are added in float, because the instruction rounds towards zero.
struct SplitProducts {
  using Element = float;
  using Pair = uint2;
  static constexpr int elements_per_step = 4;
  static constexpr int elements_per_member = 2;
  static constexpr int alignment = 2;
  static constexpr bool rounds = false;
  static int spread(int pairs) { return round_up(pairs, 2); }

  using Product = float;
  struct Quad {
    Word high[4], low[4];
  };
  struct Patch {
    Word high[2], low[2];
  };
  struct Sums {
    float of[4] = {}, partial[4] = {};

    __device__ void end_part() {
#pragma unroll
      for (int i = 0; i < 4; ++i) of[i] += partial[i], partial[i] = 0;
    }
    __device__ Product product(int i) const { return of[i]; }
  };

  /// Addresses of the halves of a pair of the window, which differ for lanes with odd and even rows.
  struct HalvesAddress {
    unsigned high, low;

    __device__ explicit HalvesAddress(unsigned pair) {
      const unsigned chunk = pair & ~15u, odd_pair = (pair & 8) / 2;
      const unsigned odd_row = 8 * FragmentLane(static_cast<int>(threadIdx.x) % warp_size).parity;
      high = chunk + odd_pair + odd_row;
      low = chunk + odd_pair + (odd_row ^ 8);
    }
  };

  struct WindowColumn {
    HalvesAddress at;
    unsigned two_rows;  ///< distance of two rows, bytes
    Word zero, last_high, last_low;

    __device__ WindowColumn(unsigned first, int stride, Word runtime_zero)
        : at(first),
          two_rows(16 * stride),
          zero(runtime_zero),
          last_high(load(at.high)),
          last_low(load(at.low)) {}
    __device__ void take(Quad& quad) {
      take(quad.high, at.high, last_high);
      take(quad.low, at.low, last_low);
    }

   private:
    /// Takes the next operands as WindowColumn of u8_products.cuh does.
    __device__ void take(Word (&quad)[4], unsigned& address, Word& last) const {
      quad[0] = last + zero;
      quad[1] = load(address + two_rows);
      quad[2] = quad[1] + zero;
      quad[3] = last = load(address + 2 * two_rows);
      address += 2 * two_rows;
    }
  };
  struct TailColumn {
    HalvesAddress at;
    unsigned two_rows;  ///< distance of two rows, bytes

    __device__ TailColumn(unsigned first, int stride) : at(first), two_rows(16 * stride) {}
    __device__ void take(Quad& quad) {
      take(quad.high, at.high);
      take(quad.low, at.low);
    }

   private:
    __device__ void take(Word (&quad)[4], unsigned& address) const {
#pragma unroll
      for (int i = 0; i < 4; ++i) quad[i] = load(address + (i / 2 + i % 2 * 8) * two_rows);
      address += 2 * two_rows;
    }
  };
  struct ReferenceColumn {
    unsigned at, two_rows;  ///< address; distance of two rows, bytes
    int bit_shift;
    uint2 next[2][2];  ///< rows 0 and 2: pairs that hold a lane's elements at any shift

    __device__ ReferenceColumn(unsigned first, int stride, int shift)
        : at(first), two_rows(16 * stride), bit_shift(shift) {
      load_next();
    }
    __device__ void take(Patch& patch) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        patch.high[i] = __funnelshift_r(next[i][0].x, next[i][1].x, bit_shift);
        patch.low[i] = __funnelshift_r(next[i][0].y, next[i][1].y, bit_shift);
      }
      load_next();
    }

   private:
    __device__ void load_next() {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        next[0][i] = load_pair(at + 8 * i);
        next[1][i] = load_pair(at + two_rows + 8 * i);
      }
      at += 2 * two_rows;
    }
  };

  template <typename ForEachTile>
  __device__ static void multiply_add(ForEachTile&& for_each_tile, const Patch& reference) {
    for_each_tile([&](Sums& sums, const Quad& window) {
      multiply(sums.partial, window.high, reference.low);
      multiply(sums.partial, window.low, reference.high);
      multiply(sums.partial, window.high, reference.high);
    });
  }
};

}  // namespace dic::kernels
