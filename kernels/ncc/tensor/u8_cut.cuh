#pragma once

#include <iterator>

#include "ncc/scoring/part_peaks.cuh"
#include "ncc/tensor/block_shifts.cuh"
#include "ncc/tensor/u8_products.cuh"

/// How cuda-u8-tensor divides its work, and what its launches write. The kernel (u8_tensor.cuh) is compiled
/// in one file for each result: together they would be by far the longest step of a build.
namespace dic::kernels::u8_tensor {

constexpr int most_warps = 4;
constexpr int most_shared_bytes = 160 * 1024;
constexpr int crowded_bytes = 22 * 1024;  ///< more shared memory for one warp leaves the SM too empty

enum class Result {
  sums,    ///< u32
  scores,  ///< f32: one ScoreKind per shift
  peaks,   ///< one Peak per pair; a block covers all shifts
  parts    ///< what part_peaks.cuh wants of the parts of pairs
};

constexpr int small_stride = 20, large_stride = 44;

/// What a warp computes: `tiles` products one above the other, and with a tail one more that is 4 columns by
/// 32 rows, for the one column that 2 R + 1 shifts are often too wide; the corner under it, by itself.
struct WarpShape {
  int tiles = 0;
  bool tail = false;
  int stride = 0;                       ///< of the window's rows in shared memory, in words; 0: any
  int k_parts = 1;                      ///< warps that share the k of their products
  bool alone = stride == small_stride;  ///< the only warp of its block, which waits for no other

  bool operator==(const WarpShape&) const = default;
  __host__ __device__ constexpr int tile_rows() const { return tiles * rows_per_tile; }
  /// Of these, those that are the warp's own: with a tail, those that the tail has too.
  __host__ __device__ constexpr int rows() const { return tail ? warp_size + 1 : tile_rows(); }
  __host__ __device__ constexpr bool has_corner() const { return tail; }
  /// Of the reference's rows.
  __host__ __device__ constexpr int reference_stride() const { return stride == large_stride ? 28 : stride; }
  __host__ __device__ constexpr int columns() const { return columns_per_warp + tail; }
  /// Of rows of scores in shared memory: odd, for lanes along y.
  __host__ __device__ constexpr int tile_stride() const {
    return alone ? columns_per_warp + 1 : 2 * columns() + 1;
  }
  __host__ __device__ constexpr int loads_at_once() const { return tail ? 16 : 24; }
};
/// Those that are compiled; the known strides come first.
constexpr WarpShape warp_shapes[]{WarpShape{8, false, small_stride},
                                  WarpShape{8, false, large_stride},
                                  WarpShape{9, true, small_stride},
                                  WarpShape{9, true, large_stride},
                                  WarpShape{9, true, large_stride, 2},
                                  WarpShape{1, false},
                                  WarpShape{2, false},
                                  WarpShape{3, false},
                                  WarpShape{4, false},
                                  WarpShape{5, false},
                                  WarpShape{6, false},
                                  WarpShape{8, false},
                                  WarpShape{9, false}};

/// Few rows of many shifts have surfaces.
constexpr bool is_compiled(const WarpShape& shape, Result output) {
  return output != Result::parts || shape.tiles >= 8;
}

/// Blocks of most_warps that an SM must have registers for: 12 warps without spills are faster than 16 with
/// them. The compiler needs more registers for older devices.
__host__ __device__ constexpr int least_blocks(const WarpShape& shape, Result output) {
  if (shape.tiles < 8) return 4;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return 2;
#else
  const bool large = shape.k_parts > 1 || (shape.stride == 0 && output != Result::sums);
  return large || (shape.tail && output != Result::peaks) ? 3 : 4;
#endif
}

/// How a block cuts its work: warps_x x warps_y warps over one stretch of shared memory.
struct Cut {
  WarpShape warp;
  int warps_x = 0, warps_y = 0;  ///< warps_x is 1 or 2
  ProductLayout k;
  Divisor window_chunks, reference_chunks;  ///< in a row
  int window_words = 0;                     ///< later with the scores of a pair, and with what warps exchange

  __host__ __device__ int columns() const { return warps_x * warp.columns(); }
  __host__ __device__ int rows() const { return warps_y * warp.rows(); }
  /// Rows -1 .. k.rows - 1, in whole steps of one word. A step ahead loads more, of the window, without using
  /// it.
  __host__ __device__ int reference_rows() const { return round_up(k.rows, 8) + 1; }
  __host__ __device__ int reference_words() const { return reference_rows() * k.reference_stride; }
  int shared_bytes() const { return static_cast<int>(sizeof(Word)) * (reference_words() + window_words); }
  int threads() const { return warps_x * warps_y * warp.k_parts * warp_size; }
};

/// What a launch writes, or what its parts tell of the peaks.
struct Scoring : TensorOutput<Word> {
  PartPeaks parts = {};
};

/// Launches the kernel of the cut's shape.
template <Result output>
void launch_cut(const NccJob& job, const Cut& cut, const PartTasks& tasks, const StatisticsTable& statistics,
                const Scoring& scoring, StreamHandle stream);

}  // namespace dic::kernels::u8_tensor
