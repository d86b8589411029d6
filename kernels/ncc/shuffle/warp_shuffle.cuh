#pragma once

#include <type_traits>

#include "common/row_tasks.hpp"
#include "ncc/job_view.cuh"

/// The loop of the warp-shuffle family. A warp computes 32 horizontally neighbouring shifts, one per lane.
/// For the `moving` patches, 64 elements of a row lie in the lanes' registers as a ring that rotates by one
/// lane per step; for the `fixed` patches, one element per row and step is broadcast.
namespace dic::kernels {

/// Elements that a lane combines in its registers; the tile of a variant overrides some of these numbers. Per
/// step: 2 moving * rows shuffles for the rings, fixed * (rows + shifts - 1) broadcasts, and moving * fixed *
/// shifts * rows products.
struct ShuffleTile {
  static constexpr int moving = 1;  ///< moving matrices
  static constexpr int fixed = 1;   ///< fixed matrices
  static constexpr int shifts = 1;  ///< vertically neighbouring shifts
  static constexpr int rows = 1;    ///< rows of the moving matrices at a time
};

template <typename Tile, typename Sum>
using TileSums = Sum[Tile::moving][Tile::fixed][Tile::shifts];

/// Elements are shuffled in registers of at least 32 bits.
template <typename T>
using Register = std::conditional_t<sizeof(T) < 4, std::uint32_t, T>;

template <typename T>
__device__ Register<T> load_or_zero(const PatchView<T>& matrix, int y, int x) {
  return y >= matrix.y0 && y < matrix.y1 ? matrix.at_or_zero(matrix.row(y), x) : T{0};
}

/// The products of a warp: rows begin .. end - 1 of the fixed matrices, and the moving matrices shifted by
/// (sx, sy) and the number of the lane.
struct ShuffleOverlap {
  int moving_width, fixed_width;  ///< widths of the whole matrices
  int sx, sy;
  int begin, end;
};

/// Adds to sums[p][k][s] the sum over rows y of [begin, end) and all x of moving[p][y + sy, x + sx + lane] *
/// fixed[k][y - s, x]. All lanes of the warp must call it.
template <typename Tile, typename T, typename Sum>
__device__ void shuffle_rows(const PatchView<T>* moving, const PatchView<T>* fixed,
                             const ShuffleOverlap& overlap, int lane, TileSums<Tile, Sum>& sums) {
  const auto [moving_width, width, sx, sy, begin, end] = overlap;
  constexpr int fixed_rows = Tile::rows + Tile::shifts - 1;
  constexpr int unrolled = Tile::moving * Tile::fixed * Tile::shifts * Tile::rows > 32 ? 4 : 8;
  const int x_begin = max(0, -(sx + warp_size - 1));
  const int x_end = min(width, moving_width - sx);
  for (int y = begin; y < end; y += Tile::rows) {
    Register<T> low[Tile::moving][Tile::rows], high[Tile::moving][Tile::rows];
    const auto load = [&](auto& ring, int x) {
#pragma unroll
      for (int p = 0; p < Tile::moving; ++p)
#pragma unroll
        for (int i = 0; i < Tile::rows; ++i) ring[p][i] = load_or_zero(moving[p], y + i + sy, x + sx + lane);
    };
    load(low, x_begin);
    for (int x = x_begin; x < x_end; x += warp_size) {
      load(high, x + warp_size);
      Register<T> broadcast[Tile::fixed][fixed_rows];
#pragma unroll
      for (int k = 0; k < Tile::fixed; ++k)
#pragma unroll
        for (int j = 0; j < fixed_rows; ++j)
          broadcast[k][j] = load_or_zero(fixed[k], y + j - (Tile::shifts - 1), x + lane);
#pragma unroll unrolled
      for (int step = 0; step < warp_size; ++step) {
#pragma unroll
        for (int k = 0; k < Tile::fixed; ++k) {
#pragma unroll
          for (int j = 0; j < fixed_rows; ++j) {
            const Register<T> element = __shfl_sync(all_lanes, broadcast[k][j], step);
            // Rows y + i and y + j - (shifts - 1) are multiplied for shift s = i - j + shifts - 1.
#pragma unroll
            for (int i = max(0, j - (Tile::shifts - 1)); i < min(Tile::rows, j + 1); ++i)
#pragma unroll
              for (int p = 0; p < Tile::moving; ++p)
                multiply_add(sums[p][k][i - j + Tile::shifts - 1], low[p][i], element);
          }
        }
#pragma unroll
        for (int p = 0; p < Tile::moving; ++p) {
#pragma unroll
          for (int i = 0; i < Tile::rows; ++i) {
            low[p][i] = __shfl_sync(all_lanes, lane == 0 ? high[p][i] : low[p][i], lane + 1);
            high[p][i] = __shfl_down_sync(all_lanes, high[p][i], 1);
          }
        }
      }
    }
  }
}

}  // namespace dic::kernels
