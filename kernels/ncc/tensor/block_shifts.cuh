#pragma once

#include "ncc/scoring/find_peak.cuh"
#include "ncc/scoring/window_statistics.cuh"
#include "ncc/tensor/tensor_tasks.cuh"
#include "ncc/tensor/u8_products.cuh"

/// Common parts of the tensor-core kernels apart from their products: which shifts of which pair a block
/// computes, what it copies to shared memory, and how scores and peaks follow from sums in registers.
///
/// A shape says what a warp computes, at compile time:
///     rows()           rows of shifts, 32 columns wide, of which a lane has one column
///     tail             true: one more column, a row of it per lane
///     has_corner()     true: one more shift under the tail
///     tile_stride()    stride of rows of scores in shared memory: odd, for lanes along y
///     loads_at_once()  statistics in flight: as many as there are registers for
///     alone            true: the only warp of its block, no barrier is needed
namespace dic::kernels {

/// The shifts of a task, beginning at (y, x) of the rectangle of shifts; T: type of the elements.
template <typename T>
struct BlockShifts {
  std::int64_t pair;
  ChunkRows window, reference;
  int x, y;
  short shifts_x, shifts_y;
  /// Range of the task's shifts at which the reference lies inside the window.
  short first_x, last_x, first_y, last_y;
  bool continues_window;  ///< the previous task has the same window
  ShiftStatistics statistics;

  BlockShifts() = default;
  template <typename Tiling>
  __device__ BlockShifts(const JobView& view, const Tiling& tiling, const Tasks& tasks,
                         const StatisticsTable& table, const Place& place) {
    pair = table.ordered(place.reference * tasks.windows + place.window);
    x = place.part_x * tiling.columns(), y = place.part_y * tiling.rows();
    shifts_x = min(tiling.columns(), view.nx - x), shifts_y = min(tiling.rows(), view.ny - y);
    continues_window = place.reference > 0;

    const int h = view.reference.height, w = view.reference.width;
    const std::int64_t index = view.window_of(pair), reference_index = view.reference_of(pair);
    const auto matrix = load_patch<T>(view.search, index);
    const int from_y = view.dy_min + y, from_x = view.dx_min + x;
    first_x = max(matrix.x0 - from_x, 0), last_x = min(matrix.x1 - w - from_x, shifts_x - 1);
    first_y = max(matrix.y0 - from_y, 0), last_y = min(matrix.y1 - h - from_y, shifts_y - 1);
    const bool whole = first_x == 0 && first_y == 0 && last_x == shifts_x - 1 && last_y == shifts_y - 1;
    window = {whole && has_whole_chunks(view.search, index) ? bytes_of(matrix).row(from_y) + bytes(from_x)
                                                            : nullptr,
              static_cast<int>(matrix.row_bytes)};
    const auto reference_bytes = bytes_of(load_patch<T>(view.reference, reference_index));
    reference = {has_whole_chunks(view.reference, reference_index) ? reference_bytes.origin : nullptr,
                 static_cast<int>(reference_bytes.row_bytes)};
    if (first_x > last_x) last_y = -1;  // no shift is inside if no column is
    statistics = table.shift_statistics(view, index, y, x);
  }

  __device__ void stage_window(const JobView& view, const Divisor& chunks, int stride, Word* shared) const {
    const int rows = view.reference.height + shifts_y - 1;
    const int row_bytes = bytes(view.reference.width + shifts_x - 1);
    if (window.first) {
      const ChunkCells cells(chunks);
      if (cells.column * chunk_bytes < window.byte() + row_bytes)
        copy_rows(window.first - window.byte(), window.row_bytes, rows, cells, stride, shared);
    } else {
      const auto matrix = bytes_of(load_patch<T>(view.search, view.window_of(pair)));
      stage_words<words_at_once>(matrix, view.dy_min + y, bytes(view.dx_min + x), rows, (row_bytes + 3) / 4,
                                 stride, shared);
    }
  }
  /// Copies the reference. `shared`: place of the first row's first chunk. Zeros follow a row in its chunks.
  __device__ void stage_reference(const JobView& view, const Divisor& chunks, int stride,
                                  Word* shared) const {
    const int h = view.reference.height, row_bytes = bytes(view.reference.width);
    if (reference.first) {
      copy_rows(reference.first - reference.byte(), reference.row_bytes, h, ChunkCells(chunks), stride,
                shared, reference.byte() + row_bytes);
    } else {
      const auto matrix = bytes_of(load_patch<T>(view.reference, view.reference_of(pair)));
      stage_words<words_at_once>(matrix, 0, 0, h, chunks.divisor * chunk_bytes / 4, stride, shared);
    }
  }

 private:
  /// Words of a column that are loaded before any is stored: as many as there are registers for.
  static constexpr int words_at_once = sizeof(T) == 1 ? 4 : 1;

  __device__ static int bytes(int elements) { return elements * static_cast<int>(sizeof(T)); }
};

/// Output of a launch: sums, the scores of all shifts, or the peaks of all pairs.
template <typename Sum>
struct TensorOutput {
  Sum* sums = nullptr;
  Criterion criterion = Criterion::zncc;
  ScoreKind kind = ScoreKind::score;
  float* scores = nullptr;
  Peak* peaks = nullptr;
};

/// Clamps zncc and ncc, which rounding may take beyond [-1, 1]; keeps NaN.
__device__ inline float clamped(float value, Criterion criterion) {
  if (criterion == Criterion::ssd) return value;
  asm("max.NaN.f32 %0, %0, 0fBF800000;\n\tmin.NaN.f32 %0, %0, 0f3F800000;" : "+f"(value));
  return value;
}

/// Shifts of a lane: a column of the warp's rows; with a tail also one shift of the tail's column and, in the
/// last lane, the corner.
template <auto shape>
struct LaneShifts {
  static constexpr int in_tiles = shape.rows();
  static constexpr int count = in_tiles + shape.tail + shape.has_corner();
  int first_row, lane, column;
  bool owned;  ///< false: another warp holds their sums

  __device__ LaneShifts(int first_row_of_warp, int first_column_of_warp, bool is_owned)
      : first_row(first_row_of_warp),
        lane(static_cast<int>(threadIdx.x % warp_size)),
        column(first_column_of_warp + lane),
        owned(is_owned) {}
  __device__ int first_column() const { return column - lane; }
  __device__ int tail_column() const { return first_column() + columns_per_warp; }
  /// Calls body(i, row, column) for the shifts of the tail and the corner.
  template <typename Body>
  __device__ void visit_tail(Body&& body) const {
    if constexpr (shape.tail)
      if (shape.rows() >= warp_size || lane < shape.rows()) body(in_tiles, first_row + lane, tail_column());
    if constexpr (shape.has_corner())
      if (lane == warp_size - 1) body(in_tiles + 1, first_row + warp_size, tail_column());
  }
  /// Calls body(i, row, column) for all shifts of the lane.
  template <typename Body>
  __device__ void visit(Body&& body) const {
#pragma unroll
    for (int i = 0; i < in_tiles; ++i) body(i, first_row + i, column);
    visit_tail(body);
  }
};
/// One value for each shift of a lane.
template <auto shape, typename Value>
using LaneValues = Value[LaneShifts<shape>::count];

/// Distributes the sums of the tail to the lanes, by rows.
template <typename Sum>
__device__ Sum tail_of_lane(const Sum (&sums)[4]) {
  const int lane = threadIdx.x % warp_size, holder = lane % 16 / 2 * 4;
  Sum row_sums[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) row_sums[i] = __shfl_sync(all_lanes, sums[i], holder);
  const Sum even = lane < 16 ? row_sums[0] : row_sums[2], odd = lane < 16 ? row_sums[1] : row_sums[3];
  return lane % 2 == 0 ? even : odd;
}

/// Sums the diagonals of a product, of which each lane holds elements of `count` tiles of 16 x 8. The first
/// element of tile i lies on diagonal 8 (i - 1). lane_sum receives the sum of diagonal `lane`, if that
/// diagonal is whole, and `last` that of the last diagonal, in all lanes. apart: diagonals from a lane's
/// first column to its second, 1 or 4.
template <int apart, int count, typename Sum>
__device__ void sum_diagonals(const Sum (&tiles)[count][4], Sum& lane_sum, Sum& last) {
  constexpr int groups = count - 1;
  const int lane = threadIdx.x % warp_size, group = lane / 4;
  Sum even[groups], odd[groups];  // rows 8 (i + 1) + group, the lane's two columns
#pragma unroll
  for (int i = 0; i < groups; ++i) {
    even[i] = tiles[i + 1][0] + tiles[i][2];
    odd[i] = tiles[i + 1][1] + tiles[i][3];
  }
  // In a lane further right by `lanes`, a diagonal is `rows` further down.
  const auto add = [&](const Sum(&right)[groups], int rows, int lanes) {
#pragma unroll
    for (int i = 0; i < groups; ++i) {
      const Sum value = group < rows && i + 1 < groups ? right[i + 1] : right[i];
      even[i] += __shfl_sync(all_lanes, value, lane + 4 * rows + lanes);
    }
  };
  constexpr int between_lanes = apart == 1 ? 2 : 1;
  add(odd, apart, 0), add(even, between_lanes, 1), add(even, 2 * between_lanes, 2);
#pragma unroll
  for (int i = 0; i + 1 < groups; ++i) {
    const Sum value = __shfl_sync(all_lanes, even[i], 4 * (lane % 8));
    if (i == 0 || i == lane / 8) lane_sum = value;
  }
  last = __shfl_sync(all_lanes, even[groups - 1], 0);
}

/// Range of rows or columns of shifts at which the reference lies in the window.
struct Defined {
  int first, last;

  __device__ bool holds(int i) const { return i >= first && i <= last; }
  __device__ int nearest(int i) const { return min(max(i, first), last); }
};

/// Computes a lane's scores: reference.score(sum, statistics, weight), where weight is reference.weight, or
/// no_score for a shift that is not defined. whole: all shifts are defined, except perhaps those of the last
/// rows_per_tile rows.
template <bool whole, auto shape, typename Reference, typename Block, typename Sum>
__device__ void score_shifts(const Reference& reference, const Block& block_shifts,
                             const LaneShifts<shape>& shifts, const LaneValues<shape, Sum>& sums,
                             LaneValues<shape, float>& scores) {
  const Defined rows{block_shifts.first_y, block_shifts.last_y},
      defined_x{block_shifts.first_x, block_shifts.last_x};
  const float weight = defined_x.holds(shifts.column) ? reference.weight : no_score;
  const WindowStatistics* const column_statistics =
      block_shifts.statistics.column(defined_x.nearest(shifts.column)) + shifts.first_row * statistics_strip;
  const auto exists = [&](int i) {
    return (whole && i < shape.rows() - rows_per_tile) || rows.holds(shifts.first_row + i);
  };
  constexpr int at_once = shape.loads_at_once();
#pragma unroll
  for (int first = 0; first < shape.rows(); first += at_once) {
    WindowStatistics row_statistics[at_once];
#pragma unroll
    for (int i = first; i < first + at_once && i < shape.rows(); ++i)
      row_statistics[i - first] =
          exists(i) ? load_statistics(column_statistics + i * statistics_strip) : WindowStatistics{};
#pragma unroll
    for (int i = first; i < first + at_once && i < shape.rows(); ++i)
      scores[i] = exists(i) ? reference.score(sums[i], row_statistics[i - first], weight) : no_score;
    __syncwarp();  // otherwise the compiler starts more loads at once, and spills registers
  }
  shifts.visit_tail([&](int i, int row, int column) {
    scores[i] = no_score;
    if (rows.holds(row) && defined_x.holds(column))
      scores[i] = reference.score(
          sums[i], load_statistics(block_shifts.statistics.column(column) + row * statistics_strip),
          reference.weight);
  });
}
template <auto shape, typename Reference, typename Block, typename Sum>
__device__ void score_shifts(const Reference& reference, const Block& block_shifts,
                             const LaneShifts<shape>& shifts, const LaneValues<shape, Sum>& sums,
                             LaneValues<shape, float>& scores) {
  const bool whole = block_shifts.first_y <= shifts.first_row &&
                     block_shifts.last_y >= shifts.first_row + shape.rows() - rows_per_tile;
  if (whole)
    score_shifts<true, shape>(reference, block_shifts, shifts, sums, scores);
  else
    score_shifts<false, shape>(reference, block_shifts, shifts, sums, scores);
}

/// Writes a lane's values to the surfaces of the job.
template <typename Block, typename Shifts, typename Value>
__device__ void store_surface(const JobView& view, const Block& block_shifts, const Shifts& shifts,
                              Value* surfaces, const auto& value_of_shift) {
  Value* const out = surfaces + (block_shifts.pair * view.ny + block_shifts.y) * view.nx + block_shifts.x;
  shifts.visit([&](int i, int row, int column) {
    if (column < block_shifts.shifts_x && row < block_shifts.shifts_y)
      out[std::int64_t{row} * view.nx + column] = value_of_shift(i);
  });
}

/// Writes a lane's scores, times `scale`, to the surfaces of the job.
template <auto shape, typename Block, typename Output>
__device__ void store_scores(const JobView& view, const Block& block_shifts, const Output& out,
                             const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores,
                             float scale = 1) {
  store_surface(view, block_shifts, shifts, out.scores, [&](int i) {
    const float score = fmaxf(clamped(scores[i] * scale, out.criterion), undefined);
    return out.kind == ScoreKind::value ? value_of(score, out.criterion) : score;
  });
}

/// Finds the peak of a pair whose shifts are all in this block. tile: shared memory for the scores. scale:
/// factor of the scores.
template <auto shape, typename Block, typename Output>
__device__ void find_peak_of_block(const JobView& view, const Block& block_shifts, const Output& out,
                                   const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores,
                                   float* tile, float scale = 1) {
  constexpr int stride = shape.tile_stride();
  ColumnBest best[1 + shape.tail];
  best[0].column = shifts.column;
  best[shape.tail].column = shape.tail ? shifts.tail_column() : shifts.column;
  if (shifts.owned)
    shifts.visit([&](int i, int row, int column) {
      tile[row * stride + column] = scores[i];
      best[i < shifts.in_tiles ? 0 : shape.tail].take(scores[i]);
    });
  Peak* const peak = out.peaks + block_shifts.pair;
  if constexpr (shape.alone)
    find_peak_of_warp<shape.tail>(view, out.criterion, best[0].score, best[shape.tail].score, {tile, stride},
                                  peak, scale);
  else
    find_peak(view, out.criterion, best, {tile, stride}, peak, scale);
}

}  // namespace dic::kernels
