#pragma once

#include "ncc/stage_patch.cuh"

/// Sums over 8-bit elements in shared memory: exact in unsigned 32 bits up to 257 x 257 elements.
namespace dic::kernels {

/// Adds the products of unsigned bytes to `sum`.
__device__ inline Word dot(Word a, Word b, Word sum) { return __dp4a(a, b, sum); }

struct ReferenceSums {
  Word sum, squares;
};

/// Zeroes the `offset` bytes of the image to the left of the reference and, if `with_sums`, stores those
/// of every warp's rows. Call it when the copies are complete. `shared`: first chunk of the first row. Bytes
/// that follow a row in its chunks are zero.
template <bool with_sums>
__device__ void sum_reference(Word* shared, int stride, int rows, int offset, int chunks,
                              ReferenceSums* sums_by_warp) {
  const auto mask = [&](int word) { return ~low_bytes(offset - 4 * word); };
  Word sum = 0, squares = 0;
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    auto* const chunk = reinterpret_cast<uint4*>(shared + row * stride);
    uint4 words = chunk[0];
    words = {words.x & mask(0), words.y & mask(1), words.z & mask(2), words.w & mask(3)};
    chunk[0] = words;
#pragma unroll 1
    for (int i = 1; with_sums; ++i) {
      for (const Word word : {words.x, words.y, words.z, words.w}) {
        sum = dot(word, 0x01010101u, sum);
        squares = dot(word, word, squares);
      }
      if (i >= chunks) break;
      words = chunk[i];
    }
  }
  if constexpr (!with_sums) return;
  sum = __reduce_add_sync(all_lanes, sum);
  squares = __reduce_add_sync(all_lanes, squares);
  if (threadIdx.x % warp_size == 0) sums_by_warp[threadIdx.x / warp_size] = {sum, squares};
}
/// Sums of the whole reference.
template <bool one_warp = false>
__device__ ReferenceSums sum_of_warps(const ReferenceSums* sums_by_warp) {
  ReferenceSums all = sums_by_warp[0];
  if constexpr (!one_warp) {
#pragma unroll 1
    for (int warp = 1; warp < static_cast<int>(blockDim.x) / warp_size; ++warp)
      all.sum += sums_by_warp[warp].sum, all.squares += sums_by_warp[warp].squares;
  }
  return all;
}

/// Reads a row, beginning with any byte, four elements at a time, and loads one word ahead.
class ByteStream {
 public:
  __device__ ByteStream(const Word* row, int byte)
      : at_(row + byte / 4), shift_(8 * (byte % 4)), last_(at_[0]), ahead_(at_[1]) {}
  __device__ Word next() {
    const Word word = __funnelshift_r(last_, ahead_, shift_);
    last_ = ahead_;
    ++at_;
    ahead_ = at_[1];
    return word;
  }

 private:
  const Word* at_;
  int shift_;
  Word last_, ahead_;
};

}  // namespace dic::kernels
