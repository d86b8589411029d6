#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "ncc/simt/shift_tiles.hpp"
#include "ncc/stage_patch.cuh"

/// Division of a job by cuda-registers, cuda-dp4a and cuda-f32-scores: tiles of shifts, the threads of a
/// block and its shared memory. Computed on the host, read by the kernels (register_tiles.cuh).
namespace dic::kernels {

constexpr int most_threads = 512;
constexpr int most_tile_bytes = 64 * 1024;  // every supported device has this much
constexpr int most_band = 64;
constexpr int most_tiles = warp_size;      // per block, along one axis
constexpr int most_columns_of_block = 96;  // shifts per block
constexpr int most_groups = 32;            // groups of steps, along one axis
constexpr int threads_of_pair = 256;       // target, unless it gives a thread too many or too few steps
constexpr int fewest_steps = 24, most_steps = 128;
constexpr int roomy_threads = 160;  // for a block that computes several pairs
constexpr int blocks_that_fill = 264;

/// Multiplication and summation of elements T. Shared memory holds Words of `columns` neighbouring elements;
/// a step multiplies `words` words of the reference with the window; the sums of a band have type Partial.
template <typename T, typename Sum>
struct Operands {
  using Word = std::conditional_t<std::is_same_v<T, std::uint16_t>, std::uint32_t,
                                  std::conditional_t<std::is_same_v<Sum, double>, double, T>>;
  using Partial = Sum;
  static constexpr int columns = 1;
  static constexpr int words = 32 / sizeof(Word);
};
/// Operands of bytes. A band has at most 64 x 64 elements: its sums fit into 32 bits.
template <typename Sum>
struct Operands<std::uint8_t, Sum> {
  using Word = std::uint32_t;
  using Partial = std::uint32_t;
  static constexpr int columns = 4;
  static constexpr int words = 4;
};

/// The shifts that a thread computes.
template <int tile_columns, int tile_rows>
struct Tile {
  static constexpr int columns = tile_columns, rows = tile_rows;
};
using NarrowTile = Tile<9, 3>;
using WideTile = Tile<11, 3>;
using HighTile = Tile<8, 4>;

/// Start of the rows of a window in shared memory. For tiles of 4 rows, every fourth row begins a word later:
/// no other stride avoids bank conflicts between neighbouring tiles.
struct RowLayout {
  int stride = 0, skew = 31;

  __host__ __device__ int at(int row) const { return row * stride + (row >> skew); }
};

/// The tiling of a job: a block computes `pairs` pairs at the shifts of a rectangle of tiles.
struct Tiling {
  ShiftAxis x, y;
  int pairs = 1;
  int threads_of_pair = 0;  ///< upper limit
  int window_rows = 0, window_columns = 0;
  RowLayout window;
  int reference_rows = 0, reference_columns = 0, reference_stride = 0;  ///< the stride in words
  int word_bytes = 0, thread_bytes = 0;

  __host__ __device__ int window_words() const { return round_up(window.at(window_rows), 4); }
  __host__ __device__ int reference_words() const { return reference_rows * reference_stride; }
  __host__ __device__ int pair_words() const { return window_words() + reference_words(); }
  int threads() const { return round_up(std::max(pairs * threads_of_pair, 1), warp_size); }
  int shared_bytes() const {
    return pairs * std::max(pair_words() * word_bytes, threads_of_pair * thread_bytes);
  }
  std::int64_t blocks_of_pair() const { return std::int64_t{x.blocks} * y.blocks; }
  bool fits() const { return threads() <= most_threads && shared_bytes() <= most_tile_bytes; }
};

/// Largest number of combinations of tile and group with steps that a block has along an axis.
inline int most_parts(const ShiftAxis& axis) {
  int most = 0;
  for (int block = 0; block < axis.blocks; ++block) {
    for (int band = 0; band < axis.bands; ++band) {
      int parts = 0;
      for (int tile = 0; tile < axis.tiles; ++tile) {
        const Steps all = axis.steps(block * axis.tiles + tile, band);
        if (all.count() > 0)
          parts += (all.last - 1) / axis.steps_of_group - all.first / axis.steps_of_group + 1;
      }
      most = std::max(most, parts);
    }
  }
  return most;
}
inline std::int64_t all_steps(const ShiftAxis& axis) {
  std::int64_t steps = 0;
  for (int band = 0; band < axis.bands; ++band)
    for (int tile = 0; tile < axis.all_tiles; ++tile) steps += axis.steps(tile, band).count();
  return steps;
}

/// Number of bank conflicts of a warp's load, if neighbouring lanes have neighbouring tiles.
template <typename K, typename Tile>
int bank_conflicts(int tiles_x, const RowLayout& rows) {
  unsigned taken = 0;
  for (int lane = 0; lane < warp_size; ++lane) {
    const int tile_x = lane % tiles_x, tile_y = lane / tiles_x;
    taken |= 1u << (tile_x * Tile::columns / K::columns + rows.at(tile_y * Tile::rows)) % 32;
  }
  return warp_size - std::popcount(taken);
}
/// The layout with the fewest conflicts for rows of `words` words.
template <typename K, typename Tile>
RowLayout spread(int words, int tiles_x) {
  RowLayout best;
  best.skew = Tile::rows == 4 ? 2 : 31;
  int fewest = warp_size + 1;
  for (RowLayout layout = best; layout.stride < words + 32 && fewest > 0; ++layout.stride) {
    if (layout.stride < words) layout.stride = words;
    const int conflicts = bank_conflicts<K, Tile>(tiles_x, layout);
    if (conflicts < fewest) best = layout, fewest = conflicts;
  }
  return best;
}

/// Computes the sizes of shared memory and block from the axes.
template <typename K, typename Tile>
void set_sizes(Tiling& tiling) {
  const int band_columns = round_up(std::min(tiling.x.reference, tiling.x.band), tiling.x.unit);
  const int band_rows = std::min(tiling.y.reference, tiling.y.band);
  tiling.window_columns = tiling.x.shifts_of_block() - 1 + band_columns;
  tiling.window_rows = std::min(tiling.y.window, tiling.y.shifts_of_block() - 1 + band_rows);
  // Words of several elements are read up to two words further.
  tiling.window = spread<K, Tile>(
      (tiling.window_columns + K::columns - 1) / K::columns + (K::columns > 1 ? 2 : 0), tiling.x.tiles);
  tiling.reference_rows = band_rows + 2 * tiling.y.lead;
  tiling.reference_columns = band_columns;
  tiling.reference_stride = band_columns / K::columns | 4;  // rows begin in different banks
  tiling.threads_of_pair = most_parts(tiling.x) * most_parts(tiling.y);
}

/// Divides an axis among more blocks. Returns false if that is not possible.
inline bool use_more_blocks(ShiftAxis& axis) {
  if (axis.tiles == 1) return false;
  axis.set_blocks(ShiftAxis::ceil(axis.all_tiles, axis.tiles - 1));
  return true;
}

/// The tiling with the fewest blocks. It does not depend on the number of pairs, so that the order of
/// additions does not either.
template <typename K, typename Tile>
Tiling smallest_tiling(const NccJob& job) {
  Tiling tiling;
  tiling.x = {.tile = Tile::columns,
              .unit = K::columns * K::words,
              .lead = 0,
              .shift_min = job.shifts.dx_min,
              .shifts = job.shifts.nx(),
              .reference = job.reference.width,
              .window = job.search.width};
  tiling.y = {.tile = Tile::rows,
              .unit = 1,
              .lead = Tile::rows - 1,
              .shift_min = job.shifts.dy_min,
              .shifts = job.shifts.ny(),
              .reference = job.reference.height,
              .window = job.search.height};
  tiling.word_bytes = sizeof(typename K::Word);
  tiling.thread_bytes = Tile::columns * Tile::rows * sizeof(typename K::Partial);
  tiling.x.set_bands(most_band * 4 / tiling.word_bytes);
  tiling.y.set_bands(most_band * 4 / tiling.word_bytes);
  tiling.x.set_blocks(ShiftAxis::ceil(tiling.x.shifts, most_columns_of_block));
  tiling.y.set_blocks(ShiftAxis::ceil(tiling.y.shifts, most_tiles * Tile::rows));
  const std::int64_t even = all_steps(tiling.x) * all_steps(tiling.y) / threads_of_pair;
  const int steps = static_cast<int>(std::clamp<std::int64_t>(even, fewest_steps, most_steps));
  const auto nearest = [](int value, int unit) {
    return std::clamp((value + unit / 2) / unit, 1, most_groups);
  };
  tiling.y.set_groups(nearest(tiling.y.most_steps(), steps));
  tiling.x.set_groups(nearest(tiling.x.most_steps() * tiling.y.steps_of_group, steps));
  return tiling;
}

/// The number of pairs that leaves the fewest lanes of a block idle.
inline int choose_pairs(const Tiling& tiling, std::int64_t pairs) {
  const auto idle = [&](int n) {
    return round_up(n * tiling.threads_of_pair, warp_size) - n * tiling.threads_of_pair;
  };
  int best = 1;
  for (Tiling more = tiling; more.pairs * tiling.threads_of_pair <= roomy_threads && more.fits();
       ++more.pairs) {
    if (pairs * tiling.blocks_of_pair() < std::int64_t{blocks_that_fill} * more.pairs) break;
    if (idle(more.pairs) * best <= idle(best) * more.pairs) best = more.pairs;
  }
  return best;
}

template <typename K, typename Tile>
Tiling make_tiling(const NccJob& job) {
  Tiling tiling = smallest_tiling<K, Tile>(job);
  set_sizes<K, Tile>(tiling);
  while ((!tiling.fits() || job.pairs * tiling.blocks_of_pair() < blocks_that_fill) &&
         (use_more_blocks(tiling.y) || (!tiling.fits() && use_more_blocks(tiling.x))))
    set_sizes<K, Tile>(tiling);
  tiling.pairs = choose_pairs(tiling, job.pairs);
  return tiling;
}

/// Calls visit(Tile{}) with the tile that computes the fewest shifts beyond the job's.
template <typename K, typename Visitor>
auto visit_best_tile(const NccJob& job, Visitor&& visit) {
  const auto cost = [&]<typename Tile>(Tile) {
    const double shifts =
        round_up(job.shifts.nx(), Tile::columns) * double(round_up(job.shifts.ny(), Tile::rows));
    const double loads = K::words + (Tile::columns - 1.0) / K::columns + Tile::rows * K::words / 4.0;
    return shifts * (1 + loads / (Tile::columns * Tile::rows * K::words));
  };
  const double narrow = cost(NarrowTile{});
  if constexpr (sizeof(typename K::Partial) == 4) {
    const double wide = cost(WideTile{}), high = cost(HighTile{});
    if constexpr (K::columns == 1)
      if (high <= std::min(narrow, wide)) return visit(HighTile{});
    if (wide <= narrow) return visit(WideTile{});
  }
  return visit(NarrowTile{});
}

}  // namespace dic::kernels
