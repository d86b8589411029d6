#pragma once

#include <cuda_pipeline.h>

#include <type_traits>

#include "ncc/simt/register_tiling.cuh"

/// A thread computes a tile of neighbouring shifts in registers: in a step it multiplies a few words of one
/// row of the window with words of `rows` rows of the reference, so that every word of the window is used for
/// all shifts of the tile. Threads of a warp have different tiles and the same words of the reference, which
/// are broadcast. If a tile has many steps, these are divided among several threads; their partial sums are
/// added in shared memory, in an order that depends on the sizes of patches and shifts alone: results repeat
/// to the last bit.
namespace dic::kernels {

/// Copies rows x columns of a patch, beginning at (y, x), as words; elements that do not exist are zero.
template <typename Word, typename T>
__device__ void stage(const PatchView<T>& matrix, int y, int x, int rows, int columns,
                      const RowLayout& layout, Word* shared) {
  const Cells cells(columns);
  for (int column = cells.column(); column < columns; column += cells.columns_at_once()) {
    const bool in_columns = x + column >= matrix.x0 && x + column < matrix.x1;
#pragma unroll 4
    for (int row = cells.row(); row < rows; row += cells.rows_at_once()) {
      const bool exists = in_columns && y + row >= matrix.y0 && y + row < matrix.y1;
      Word* const target = shared + layout.at(row) + column;
      const T* const source = exists ? matrix.row(y + row) + x + column : matrix.origin;
      if constexpr (std::is_same_v<T, Word>)
        __pipeline_memcpy_async(target, source, sizeof(T), exists ? 0 : sizeof(T));
      else
        *target = exists ? static_cast<Word>(__ldg(source)) : Word{0};
    }
  }
}
__device__ inline void stage(const PatchView<u8>& matrix, int y, int x, int rows, int columns,
                             const RowLayout& layout, Word* shared) {
  stage_words(matrix, y, x, rows, (columns + 3) / 4, layout.stride, shared);
}

/// Loads a thread's words of a row of the window for a step: word k begins k elements further right.
template <typename K, int count>
__device__ void load_window(const typename K::Word* at, int byte_shift, typename K::Word (&window)[count]) {
  if constexpr (K::columns == 1) {
#pragma unroll
    for (int k = 0; k < count; ++k) window[k] = at[k];
  } else {
    Word low = at[0], aligned = __funnelshift_r(low, at[1], byte_shift);
#pragma unroll
    for (int k = 0; k < count; k += 4) {
      const Word high = at[k / 4 + 2], next = __funnelshift_r(at[k / 4 + 1], high, byte_shift);
#pragma unroll
      for (int b = 0; b < 4 && k + b < count; ++b) window[k + b] = __funnelshift_r(aligned, next, 8 * b);
      aligned = next;
    }
  }
}
template <typename Word, int count>
__device__ void load_aligned(const Word* at, Word (&words)[count]) {
  constexpr int per_load = 16 / sizeof(Word);
#pragma unroll
  for (int i = 0; i < count; i += per_load) {
    struct alignas(16) Quad {
      Word words[per_load];
    };
    const Quad quad = *reinterpret_cast<const Quad*>(at + i);
#pragma unroll
    for (int k = 0; k < per_load; ++k) words[i + k] = quad.words[k];
  }
}

/// Does one step: sums[d][x] += the products at shift (d, x) of the tile.
template <typename K, typename Tile>
__device__ void multiply_step(const typename K::Word* window_at, int byte_shift,
                              const typename K::Word* reference_at, int reference_stride,
                              typename K::Partial (&sums)[Tile::rows][Tile::columns]) {
  constexpr int count = Tile::columns + K::columns * (K::words - 1);
  typename K::Word window[count];
  load_window<K>(window_at, byte_shift, window);
#pragma unroll
  for (int d = 0; d < Tile::rows; ++d) {
    typename K::Word reference[K::words];
    load_aligned(reference_at - d * reference_stride, reference);
#pragma unroll
    for (int j = 0; j < K::words; ++j)
#pragma unroll
      for (int x = 0; x < Tile::columns; ++x) {
        if constexpr (K::columns == 4)
          sums[d][x] = __dp4a(reference[j], window[x + 4 * j], sums[d][x]);
        else
          multiply_add(sums[d][x], reference[j], window[x + j]);
      }
  }
}

struct GroupRange {
  int first, count;
};

/// The work of a block along one axis: group g has `tiles` tiles, beginning with `first`; the groups before
/// it have `before` tiles.
struct GroupList {
  struct Group {
    short first, tiles, before;
  };
  Group groups[most_groups];
  int count, total;

  /// Lists the groups. One warp must call it.
  __device__ void list(const ShiftAxis& axis, int first_tile, int band) {
    const int lane = threadIdx.x % warp_size;
    const Steps steps = lane < axis.tiles ? axis.steps(first_tile + lane, band) : Steps{};
    int sum = 0;
    for (int g = 0; g < axis.groups; ++g) {
      const unsigned tiles = __ballot_sync(all_lanes, axis.group_steps(steps, g).count() > 0);
      const int n = __popc(tiles);
      if (lane == 0)
        groups[g] = {static_cast<short>(__ffs(tiles) - 1), static_cast<short>(n), static_cast<short>(sum)};
      sum += n;
    }
    if (lane == 0) count = axis.groups, total = sum;
  }
  /// The group of number i, if every tile counts n times.
  __device__ int group_of(int i, int n) const {
    int g = count - 1;
    while (groups[g].before * n > i) --g;
    return g;
  }
  /// The groups in which a tile has steps.
  __device__ GroupRange groups_of(int tile) const {
    GroupRange range{0, 0};
    for (int g = count - 1; g >= 0; --g)
      if (static_cast<unsigned>(tile - groups[g].first) < static_cast<unsigned>(groups[g].tiles))
        range = {g, range.count + 1};
    return range;
  }
};

/// The threads of a block, ordered by group along y, group along x, tile along y, tile along x.
struct TileParts {
  GroupList x, y;

  struct Place {
    int group_x, group_y, tile_x, tile_y;
  };
  __device__ int count() const { return x.total * y.total; }
  __device__ Place place(int i) const {
    const int group_y = y.group_of(i, x.total);
    const GroupList::Group range_y = y.groups[group_y];
    i -= range_y.before * x.total;
    const int group_x = x.group_of(i, range_y.tiles);
    const GroupList::Group range_x = x.groups[group_x];
    i -= range_x.before * range_y.tiles;
    const int row = i / range_x.tiles;
    return {group_x, group_y, range_x.first + i - row * range_x.tiles, range_y.first + row};
  }
  __device__ int index(const Place& at) const {
    const GroupList::Group range_x = x.groups[at.group_x], range_y = y.groups[at.group_y];
    return range_y.before * x.total + range_x.before * range_y.tiles +
           (at.tile_y - range_y.first) * range_x.tiles + at.tile_x - range_x.first;
  }
};

/// The work of a block: pairs that begin with number `first` of the view, tiles that begin with (tile_y,
/// tile_x).
struct TileBlock {
  std::int64_t first;
  int pairs;
  int tile_x, tile_y;
  int shifts_x, shifts_y;  ///< requested shifts

  __device__ TileBlock(const JobView& view, const Tiling& tiling, std::int64_t task) : tile_x(0), tile_y(0) {
    if (const int blocks = tiling.x.blocks * tiling.y.blocks; blocks > 1) {
      const int block = static_cast<int>(task % blocks);
      task /= blocks;
      tile_x = block % tiling.x.blocks * tiling.x.tiles;
      tile_y = block / tiling.x.blocks * tiling.y.tiles;
    }
    first = task * tiling.pairs;
    pairs = static_cast<int>(min(std::int64_t{tiling.pairs}, view.pairs - first));
    shifts_x = min(tiling.x.shifts_of_block(), view.nx - tile_x * tiling.x.tile);
    shifts_y = min(tiling.y.shifts_of_block(), view.ny - tile_y * tiling.y.tile);
  }
};

/// First row of the window under a band.
__device__ inline int first_window_row(const Tiling& tiling, const TileBlock& block, int band_y) {
  return max(0, tiling.y.shift_of(block.tile_y) + tiling.y.band_begin(band_y));
}

/// Copies a band to shared memory; it is complete after the next barrier.
template <typename T, typename Word>
__device__ void stage_band(const JobView& view, const Tiling& tiling, const TileBlock& block, int band_x,
                           int band_y, Word* shared) {
  const int x = tiling.x.band_begin(band_x), y = tiling.y.band_begin(band_y);
  for (int pair_of_block = 0; pair_of_block < block.pairs; ++pair_of_block) {
    Word* const words = shared + pair_of_block * tiling.pair_words();
    const std::int64_t pair = block.first + pair_of_block;
    const auto window = load_patch<T>(view.search, view.window_of(pair));
    stage(window, first_window_row(tiling, block, band_y), tiling.x.shift_of(block.tile_x) + x,
          tiling.window_rows, tiling.window_columns, tiling.window, words);
    auto reference = load_patch<T>(view.reference, view.reference_of(pair));
    reference.y0 = max(reference.y0, y), reference.y1 = min(reference.y1, tiling.y.band_end(band_y));
    stage(reference, y - tiling.y.lead, x, tiling.reference_rows, tiling.reference_columns,
          RowLayout{tiling.reference_stride}, words + tiling.window_words());
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

/// Computes a thread's part of the products of a band. `row`: row of the window, in shared memory, that
/// belongs to the first row of the tile.
template <typename K, typename Tile>
__device__ void multiply_part(const Tiling& tiling, const typename K::Word* words, int tile_x, int row,
                              Steps steps_x, Steps steps_y,
                              typename K::Partial (&sums)[Tile::rows][Tile::columns]) {
  const auto* const reference =
      words + tiling.window_words() + (tiling.y.lead + steps_y.first) * tiling.reference_stride;
  for (int step = steps_x.first; step < steps_x.last; ++step) {
    const int column = tile_x * Tile::columns + step * K::columns * K::words;
    const auto* const window = words + column / K::columns;
    const auto* reference_at = reference + step * K::words;
#pragma unroll 1
    for (int i = steps_y.first; i < steps_y.last; ++i) {
      multiply_step<K, Tile>(window + tiling.window.at(row + i), 8 * (column % K::columns), reference_at,
                             tiling.reference_stride, sums);
      reference_at += tiling.reference_stride;
    }
  }
}

/// Partial sums of a band, which overwrite its operands in shared memory.
template <typename K, typename Tile>
class PartialSums {
 public:
  using Partial = typename K::Partial;

  /// Multiplies a staged band. Begins and ends with a barrier.
  __device__ PartialSums(const Tiling& tiling, const TileBlock& block, int band_x, int band_y, void* shared)
      : sums_(static_cast<Partial*>(shared)) {
    __shared__ TileParts block_parts;
    parts_ = &block_parts;
    if (threadIdx.x < warp_size) {
      block_parts.x.list(tiling.x, block.tile_x, band_x);
      block_parts.y.list(tiling.y, block.tile_y, band_y);
    }
    __syncthreads();
    parts_of_pair_ = block_parts.count();
    const int thread = static_cast<int>(threadIdx.x);
    pair_of_block_ = thread < parts_of_pair_ * block.pairs ? thread / parts_of_pair_ : -1;
    Partial sums[Tile::rows][Tile::columns] = {};
    if (pair_of_block_ >= 0) {
      at_ = block_parts.place(thread - pair_of_block_ * parts_of_pair_);
      const int tile_y = block.tile_y + at_.tile_y;
      const int row =
          tiling.y.shift_of(tile_y) + tiling.y.band_begin(band_y) - first_window_row(tiling, block, band_y);
      multiply_part<K, Tile>(
          tiling, static_cast<const typename K::Word*>(shared) + pair_of_block_ * tiling.pair_words(),
          at_.tile_x, row,
          tiling.x.group_steps(tiling.x.steps(block.tile_x + at_.tile_x, band_x), at_.group_x),
          tiling.y.group_steps(tiling.y.steps(tile_y, band_y), at_.group_y), sums);
    }
    __syncthreads();
    if (pair_of_block_ >= 0) {
#pragma unroll
      for (int i = 0; i < sums_of_thread; ++i)
        sums_[thread * sums_of_thread + i] = sums[i / Tile::columns][i % Tile::columns];
    }
    __syncthreads();
  }

  /// Calls body(pair_of_block, x, y, sums) with the sums of every row of every tile, which begins at shift
  /// (x, y) of the block. The rows of a tile are divided among its threads; tiles without products have none.
  template <typename Body>
  __device__ void for_each_row(Body&& body) const {
    if (pair_of_block_ < 0) return;
    const GroupRange range_x = parts_->x.groups_of(at_.tile_x), range_y = parts_->y.groups_of(at_.tile_y);
    const int rank = (at_.group_y - range_y.first) * range_x.count + at_.group_x - range_x.first;
    for (int row = rank; row < Tile::rows; row += range_x.count * range_y.count) {
      Partial sums[Tile::columns] = {};
      for (int y = range_y.first; y < range_y.first + range_y.count; ++y) {
        for (int x = range_x.first; x < range_x.first + range_x.count; ++x) {
          const int part = pair_of_block_ * parts_of_pair_ + parts_->index({x, y, at_.tile_x, at_.tile_y});
          const Partial* const part_sums = sums_ + part * sums_of_thread + row * Tile::columns;
#pragma unroll
          for (int i = 0; i < Tile::columns; ++i) sums[i] += part_sums[i];
        }
      }
      body(pair_of_block_, at_.tile_x * Tile::columns, at_.tile_y * Tile::rows + row, sums);
    }
  }

 private:
  static constexpr int sums_of_thread = Tile::columns * Tile::rows;

  Partial* sums_;
  const TileParts* parts_;
  int parts_of_pair_;    ///< number of parts, one per thread
  int pair_of_block_;    ///< pair of the thread, counted from the block's first; -1: none
  TileParts::Place at_;  ///< part of the thread
};

}  // namespace dic::kernels
