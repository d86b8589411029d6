#pragma once

#include <algorithm>
#include <iterator>

#include "ncc/stage_patch.cuh"
#include "ncc/tensor/u8_products.cuh"

/// Division of a job by the kernels for elements wider than a byte (wide_tensor.cuh): the shapes of warps,
/// the warps of a block, and the places of a block's data in shared memory. Method: see WideMethod.
namespace dic::kernels {

/// Shifts that a warp computes: `tiles` products one above the other, 32 columns wide. With a tail, also the
/// 33rd column of shifts, which 2 R + 1 shifts often need: by one more product of 4 columns by 32 rows, or by
/// multiply_tail.
struct WideShape {
  int tiles = 0;
  bool tail = false;
  int stride = 0, reference_stride = 0;  ///< strides of rows in shared memory, in pairs of elements; 0: any
  bool in_parts = false;                 ///< sums of many steps are split into several, against rounding
  bool alone = false;                    ///< the only warp of its block, no barrier is needed

  __host__ __device__ constexpr int rows() const { return tiles * rows_per_tile; }
  __host__ __device__ constexpr bool has_corner() const { return tail && rows() > warp_size; }
  __host__ __device__ constexpr int tile_stride() const {
    return (tail || (stride > 0 && stride < 48) ? 1 : 2) * columns_per_warp + 1;
  }
  __host__ __device__ constexpr int loads_at_once() const { return alone ? rows() : 16; }
};

constexpr int most_shared_bytes = 224 * 1024;
constexpr int most_parts = 4;
constexpr int steps_per_part = 96;  ///< steps per part of a sum that rounds
constexpr int tail_rows = 16;       ///< rows of the reference that multiply_tail takes at once

/// The tiling of a job: a block has warps_x x warps_y places over one window in shared memory, and `parts`
/// warps for each place, among which the steps along q are divided.
struct WideTiling {
  std::size_t shape = 0;  ///< index in Method::shapes
  WideShape warp;
  int warps_x = 0, warps_y = 0, parts = 1;  ///< warps_x is 1 or 2, with a tail 1
  ProductLayout k;
  Divisor window_chunks, reference_chunks;  ///< chunks in a row, as it is copied
  Divisor operand_chunks;                   ///< chunks in a row of the reference, as it is summed and
                                            ///< converted
  // Places in shared memory, in words: start of the operands of the reference, of the first row of a staged
  // reference, of scores and of the window; operands of the reference's second copy begin `copy_at` after
  // those of the first.
  int operands_at = 0, copy_at = 0, staged_at = 0, tile_at = 0, window_at = 0;
  int window_words = 0, tile_words = 0, words = 0;  ///< words: total
  int exchange_at = 0;                              ///< place of exchanged sums in the tile

  __host__ __device__ int columns() const { return warps_x * columns_per_warp + (warp.tail ? 1 : 0); }
  /// Rows of shifts; with a corner, no more than the tail has.
  __host__ __device__ int rows() const { return warp.has_corner() ? warp_size + 1 : warps_y * warp.rows(); }
  int warps() const { return warps_x * warps_y * parts; }
  int threads() const { return warps() * warp_size; }
  int shared_bytes() const { return static_cast<int>(sizeof(Word)) * words; }
  /// Warps on a multiprocessor with 228 KB, whose registers allow `most`.
  int resident_warps(int most) const {
    constexpr int kilobytes = 228, static_bytes = 2048;
    return std::min(most / warps(), kilobytes * 1024 / (shared_bytes() + static_bytes)) * warps();
  }
  /// Steps along p and q of all products.
  int steps(int elements_per_step) const { return k.rows / 4 * (2 * k.words / elements_per_step); }
};

/// Chooses the first compiled shape with the tiles of `warp` into which the rows of shared memory fit.
/// Returns false if there is none.
template <typename Method>
bool choose_shape(WideTiling& tiling, int window_pairs, int reference_pairs) {
  for (std::size_t i = 0; i < std::size(Method::shapes); ++i) {
    const WideShape& shape = Method::shapes[i];
    if (shape.tiles != tiling.warp.tiles || shape.tail != tiling.warp.tail) continue;
    const bool fits =
        shape.stride == 0 || (window_pairs <= shape.stride && reference_pairs <= shape.reference_stride);
    const bool rounds = Method::Products::rounds && !shape.in_parts &&
                        tiling.steps(Method::Products::elements_per_step) > steps_per_part;
    if (!fits || rounds || tiling.columns() > shape.tile_stride() || (shape.alone && tiling.warps() > 1))
      continue;
    tiling.shape = i, tiling.warp = shape;
    tiling.k.window_stride = shape.stride > 0 ? shape.stride : Method::Products::spread(window_pairs);
    tiling.k.reference_stride = shape.stride > 0 ? shape.reference_stride : round_up(reference_pairs, 4);
    return true;
  }
  return false;
}

/// Sets the sizes of shared memory.
template <typename Method>
void lay_out(const NccJob& job, bool scored, WideTiling& tiling) {
  const int rows = tiling.warps_y * tiling.warp.rows();
  constexpr int words_per_product = sizeof(typename Method::Products::Product) / sizeof(Word);
  constexpr int words_per_pair = sizeof(typename Method::Products::Pair) / sizeof(Word);
  // Words of sums that the parts of a place exchange, see LaneShifts.
  const int exchanged = (tiling.parts - 1) * tiling.warps_x * tiling.warps_y * (tiling.warp.rows() + 2) *
                        warp_size * words_per_product;
  tiling.exchange_at = Method::keeps_tile ? round_up(rows * tiling.warp.tile_stride(), 4) : 0;
  tiling.tile_words =
      scored ? round_up(std::max(rows * tiling.warp.tile_stride(), tiling.exchange_at + exchanged), 4) : 0;
  // A step loads 4 rows of the next one, and the last row of a warp's last step is read beyond its end. A
  // tail reads up to 32 rows, beginning with its last 16 rows of the reference, or with its last step.
  const int tail_sums = tiling.warp.tail ? std::max(warp_size - tiling.warp.rows(), 0) : 0;
  const int columns = tiling.warps_x * columns_per_warp / 2 + 8 + tiling.k.words;
  tiling.window_words =
      round_up(words_per_pair * ((tiling.k.rows + rows + tail_sums + 2) * tiling.k.window_stride +
                                 std::max(columns - tiling.k.window_stride, 0)),
               4);
  Method::lay_out(job, tiling);
}

/// Makes the tiling; its warp.tiles is 0 if no compiled shape fits.
template <typename Method>
WideTiling make_wide_tiling(const NccJob& job, bool scored, WideShape warp, int warps_x, int warps_y) {
  using Products = typename Method::Products;
  const int w = job.reference.width;
  WideTiling tiling;
  tiling.warp = warp, tiling.warps_x = warps_x, tiling.warps_y = warps_y;
  tiling.k.rows = round_up(job.reference.height + 1, 4);
  tiling.k.words = round_up(w + 3 + Products::alignment - 1, Products::elements_per_step) / 2;
  constexpr int element_bytes = sizeof(typename Products::Element);
  tiling.window_chunks = Divisor(most_chunks(element_bytes * (tiling.columns() + w - 1)));
  tiling.reference_chunks = Divisor(most_chunks(element_bytes * w));
  constexpr int chunk_pairs = chunk_bytes / sizeof(typename Products::Pair);
  const auto choose = [&] {
    return choose_shape<Method>(
        tiling, tiling.window_chunks.divisor * chunk_pairs,
        Method::reference_pairs(tiling.reference_chunks.divisor * chunk_pairs, tiling.k.words, w));
  };
  if (!choose()) {
    tiling.warp.tiles = 0;
    return tiling;
  }
  lay_out<Method>(job, scored, tiling);
  // If large windows leave room for few blocks, a block gets more warps.
  constexpr int enough_warps = 9;
  while (scored && tiling.resident_warps(16) < enough_warps && tiling.parts < most_parts &&
         (tiling.parts + 1) * warps_x * warps_y <= Method::most_warps) {
    ++tiling.parts;
    if (tiling.warp.alone) choose();
    lay_out<Method>(job, scored, tiling);
  }
  return tiling;
}

/// The smallest compiled number of tiles of which `warps` cover `tiles`, or otherwise the largest.
template <typename Method>
int tiles_for(int tiles, bool tail, int warps) {
  int best = 0;
  for (const WideShape& shape : Method::shapes) {
    if (shape.tail != tail) continue;
    const bool covers = shape.tiles * warps >= tiles, best_covers = best * warps >= tiles;
    if (covers ? !best_covers || shape.tiles < best : !best_covers && shape.tiles > best) best = shape.tiles;
  }
  return best;
}

/// The lowest shape that covers all shifts, with as many warps along y as that takes; the largest tiling if
/// no shape covers them.
template <typename Method>
WideTiling tiling_for(const NccJob& job, bool scored, bool tail, int warps_x) {
  const int tiles = (job.shifts.ny() + rows_per_tile - 1) / rows_per_tile;
  WideShape warp{0, tail};
  int warps_y = 0;
  do {
    ++warps_y;
    warp.tiles = tiles_for<Method>(tiles, tail, warps_y);
  } while (warp.tiles * warps_y < tiles && !warp.has_corner() &&
           (warps_y + 1) * warps_x <= Method::most_warps);
  return make_wide_tiling<Method>(job, scored, warp, warps_x, warps_y);
}

/// True if shared memory holds the tiling, and the block has a thread for every chunk of a row.
inline bool fits(const WideTiling& tiling) {
  const int chunks = std::max(tiling.window_chunks.divisor, tiling.operand_chunks.divisor);
  return tiling.warp.tiles > 0 && tiling.shared_bytes() <= most_shared_bytes && chunks <= tiling.threads();
}

/// Tiling for a job; it need not fit.
template <typename Method>
WideTiling choose_wide_tiling(const NccJob& job, bool scored) {
  const auto stretches = [&](int width) { return (job.shifts.nx() + width - 1) / width; };
  const int plain = stretches(columns_per_warp);
  if (10 * stretches(columns_per_warp + 1) < 8 * (plain == 1 ? 1 : round_up(plain, 2)))
    if (const WideTiling tiling = tiling_for<Method>(job, scored, true, 1); fits(tiling)) return tiling;
  const WideTiling tiling = tiling_for<Method>(job, scored, false, plain == 1 ? 1 : 2);
  if (fits(tiling)) return tiling;
  return make_wide_tiling<Method>(job, scored, {Method::most_tiles, false}, 1, 1);
}

}  // namespace dic::kernels
