#pragma once

#include <iterator>

#include "ncc/scoring/part_peaks.cuh"
#include "ncc/tensor/block_shifts.cuh"
#include "ncc/tensor/u8_products.cuh"

/// Division of the work of cuda-u8-tensor among warps and blocks, and the output of its launches. The kernel
/// (u8_tensor.cuh) is compiled in one file for each result, so that these compile in parallel.
namespace dic::kernels::u8_tensor {

constexpr int most_warps = 4;
constexpr int most_shared_bytes = 160 * 1024;
constexpr int crowded_bytes = 22 * 1024;  ///< more bytes per warp leave too few warps on a multiprocessor

enum class Result {
  sums,    ///< u32
  scores,  ///< f32: one ScoreKind per shift
  peaks,   ///< one Peak per pair; a block covers all shifts
  parts    ///< values of each part of a pair that part_peaks.cuh needs
};

constexpr int small_stride = 20, large_stride = 44;

/// Shifts that a warp computes: `tiles` products one above the other, 32 columns wide. With a tail, one more
/// product of 4 columns by 32 rows gives the 33rd column of shifts, which 2 R + 1 shifts often need, and the
/// corner under it is computed separately.
struct WarpShape {
  int tiles = 0;
  bool tail = false;
  int stride = 0;                       ///< stride of the window's rows in shared memory, in words; 0: any
  int split_k = 1;                      ///< warps among which the k of a product is split
  bool alone = stride == small_stride;  ///< the only warp of its block, which waits for no other

  bool operator==(const WarpShape&) const = default;
  __host__ __device__ constexpr int tile_rows() const { return tiles * rows_per_tile; }
  /// Rows of shifts that the warp writes. With a tail, no more than the tail has.
  __host__ __device__ constexpr int rows() const { return tail ? warp_size + 1 : tile_rows(); }
  __host__ __device__ constexpr bool has_corner() const { return tail; }
  /// Stride of the reference's rows, in words.
  __host__ __device__ constexpr int reference_stride() const { return stride == large_stride ? 28 : stride; }
  __host__ __device__ constexpr int columns() const { return columns_per_warp + tail; }
  /// Stride of rows of scores in shared memory: odd, for lanes along y.
  __host__ __device__ constexpr int tile_stride() const {
    return alone ? columns_per_warp + 1 : 2 * columns() + 1;
  }
  __host__ __device__ constexpr int loads_at_once() const { return tail ? 16 : 24; }
};
/// The shapes that are compiled; known strides come first.
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

/// True if the shape is compiled for the result. Jobs of many shifts with few rows find their peaks from
/// surfaces.
constexpr bool is_compiled(const WarpShape& shape, Result output) {
  return output != Result::parts || shape.tiles >= 8;
}

/// Number of blocks of most_warps that a multiprocessor must have registers for: 12 warps without spills are
/// faster than 16 with spills. The compiler needs more registers for older devices.
__host__ __device__ constexpr int least_blocks(const WarpShape& shape, Result output) {
  if (shape.tiles < 8) return 4;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return 2;
#else
  const bool large = shape.split_k > 1 || (shape.stride == 0 && output != Result::sums);
  return large || (shape.tail && output != Result::peaks) ? 3 : 4;
#endif
}

/// The tiling of a job: a block has warps_x x warps_y warps over one window in shared memory.
struct Tiling {
  WarpShape warp;
  int warps_x = 0, warps_y = 0;  ///< warps_x is 1 or 2
  ProductLayout k;
  Divisor window_chunks, reference_chunks;  ///< chunks in a row
  int window_words = 0;  ///< the memory later holds the scores of a pair, and sums that warps exchange

  __host__ __device__ int columns() const { return warps_x * warp.columns(); }
  __host__ __device__ int rows() const { return warps_y * warp.rows(); }
  /// Number of rows -1 .. k.rows - 1, in whole steps of one word. A step also loads words of the next one,
  /// beyond these rows, and does not use them.
  __host__ __device__ int reference_rows() const { return round_up(k.rows, 8) + 1; }
  __host__ __device__ int reference_words() const { return reference_rows() * k.reference_stride; }
  int shared_bytes() const { return static_cast<int>(sizeof(Word)) * (reference_words() + window_words); }
  int threads() const { return warps_x * warps_y * warp.split_k * warp_size; }
};

/// Output of a launch: its results, or the results of parts of pairs.
struct Scoring : TensorOutput<Word> {
  PartPeaks parts = {};
};

/// Launches the kernel of the tiling's shape.
template <Result output>
void launch_tiling(const NccJob& job, const Tiling& tiling, const PartTasks& tasks,
                   const StatisticsTable& statistics, const Scoring& scoring, StreamHandle stream);

}  // namespace dic::kernels::u8_tensor
