#include <algorithm>
#include <iterator>
#include <new>

#include "common/resident_blocks.hpp"
#include "ncc/find_peak.cuh"
#include "ncc/part_peaks.cuh"
#include "ncc/u8_products.cuh"
#include "ncc/u8_scores.cuh"
#include "ncc/u8_sparse.hpp"
#include "ncc/variants.hpp"
#include "ncc/window_statistics.cuh"

// Exact sums of u8 products on tensor cores (u8_products.cuh says how), and their scores and peaks. A block
// does the shifts of one pair, or a share of them, out of shared memory; what scores need of the window is
// there before (window_statistics.cuh).
namespace dic::kernels {
namespace {

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
  int stride = 0;   ///< of the window's rows in shared memory, in words; 0: any
  int k_parts = 1;  ///< warps that share the k of their products

  bool operator==(const WarpShape&) const = default;
  /// True for the only warp of its block, which waits for no other.
  __host__ __device__ constexpr bool alone() const { return stride == small_stride; }
  __host__ __device__ constexpr int rows() const { return tiles * rows_per_tile; }
  /// Of these, those that are the warp's own: with a tail, those that the tail has too.
  __host__ __device__ constexpr int shifts_y() const { return tail ? warp_size + 1 : rows(); }
  /// The same for the reference.
  __host__ __device__ constexpr int reference_stride() const { return stride == large_stride ? 28 : stride; }
  __host__ __device__ constexpr int columns() const { return columns_per_warp + tail; }
  /// Of rows of scores in shared memory: odd, for lanes along y.
  __host__ __device__ constexpr int tile_stride() const {
    return stride == small_stride ? columns_per_warp + 1 : 2 * columns() + 1;
  }
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
  __host__ __device__ int rows() const { return warps_y * warp.shifts_y(); }
  /// Rows -1 .. k.rows - 1, in whole steps of one word. A step ahead loads more, of the window, without using
  /// it.
  __host__ __device__ int reference_rows() const { return round_up(k.rows, 8) + 1; }
  __host__ __device__ int reference_words() const { return reference_rows() * k.reference_stride; }
  int shared_bytes() const { return static_cast<int>(sizeof(Word)) * (reference_words() + window_words); }
  int threads() const { return warps_x * warps_y * warp.k_parts * warp_size; }
};

/// Rows of whole chunks that begin 12 or 20 banks apart: two neighbouring rows of 8 words never meet in one
/// bank.
int spread(int words) {
  int stride = round_up(words, 4);
  while (stride % 32 != 12 && stride % 32 != 20) stride += 4;
  return stride;
}

/// The shape takes a known stride where one fits and is compiled. Where a warp would be alone with a tail and
/// a large window, two share it.
WarpShape with_stride(const Cut& cut, int reference_stride) {
  WarpShape shape = cut.warp;
  for (const int stride : {small_stride, large_stride}) {
    shape.stride = stride;
    shape.k_parts = shape.tail && stride == large_stride && cut.warps_x * cut.warps_y == 1 ? 2 : 1;
    if (cut.k.window_stride == stride && reference_stride <= shape.reference_stride() &&
        cut.columns() <= shape.tile_stride() && (!shape.alone() || cut.warps_x * cut.warps_y == 1) &&
        std::ranges::find(warp_shapes, shape) != std::end(warp_shapes))
      return shape;
  }
  return cut.warp;
}

Cut make_cut(const NccJob& job, Result output, WarpShape warp, int warps_x, int warps_y) {
  const int h = job.reference.height, w = job.reference.width;
  Cut cut;
  cut.warp = warp, cut.warps_x = warps_x, cut.warps_y = warps_y;
  cut.k.rows = round_up(h + 1, 4);
  cut.k.words = (w + 3 + 3 + 3) / 4;
  // The first word of a warp's last step, and what the copy of whole chunks writes.
  cut.window_chunks = Divisor(most_chunks(cut.columns() + w - 1));
  cut.reference_chunks = Divisor(most_chunks(w));
  cut.k.window_stride =
      spread(std::max(cut.k.words + cut.columns() / 4 + 2, cut.window_chunks.divisor * chunk_bytes / 4));
  const int reference_stride = round_up(reference_pad / 4 + 4 + cut.k.words, 4);
  cut.warp = with_stride(cut, reference_stride);
  cut.k.reference_stride = cut.warp.stride > 0 ? cut.warp.reference_stride() : reference_stride;
  const int rows = warps_y * cut.warp.rows();
  // A step of one word ahead loads 8 rows more.
  cut.window_words = (round_up(cut.k.rows, 8) + rows + 6) * cut.k.window_stride;
  if (output == Result::peaks) cut.window_words = std::max(cut.window_words, rows * cut.warp.tile_stride());
  if (cut.warp.k_parts > 1) cut.window_words = std::max(cut.window_words, (cut.warp.rows() + 2) * warp_size);
  return cut;
}

constexpr int most_tiles = std::end(warp_shapes)[-1].tiles;

/// The lowest shape that covers `tiles` with warps_y warps.
WarpShape shape_for(int tiles, int warps_y) {
  return *std::ranges::find_if(warp_shapes, [&](const WarpShape& shape) {
    return !shape.tail && shape.stride == 0 && shape.tiles * warps_y >= tiles;
  });
}

constexpr WarpShape with_tail{9, true};

/// Warps with tails that cover the shifts.
struct TailWarps {
  int x, y;

  explicit TailWarps(const Shifts& shifts) : x(warps(shifts.nx())), y(warps(shifts.ny())) {}
  /// True where they cost less than stretches of 32 or 64 columns: in products a step.
  bool pay(const Shifts& shifts) const {
    const int warps_x = (shifts.nx() + columns_per_warp - 1) / columns_per_warp;
    const int tiles = (shifts.ny() + rows_per_tile - 1) / rows_per_tile;
    return (with_tail.tiles + 1) * x * y < (warps_x == 1 ? 1 : round_up(warps_x, 2)) * tiles;
  }
  bool fit_a_block() const { return x * y > 1 && x <= 2 && y <= 2; }

 private:
  static int warps(int shifts) { return (shifts + columns_per_warp) / (columns_per_warp + 1); }
};

/// The cut for a job; shared_bytes() tells whether it fits.
Cut choose_cut(const NccJob& job, Result output) {
  const int tiles = (job.shifts.ny() + rows_per_tile - 1) / rows_per_tile;
  if (const TailWarps warps(job.shifts); warps.pay(job.shifts)) {
    if (warps.fit_a_block())
      if (const Cut cut = make_cut(job, output, with_tail, warps.x, warps.y); cut.warp.stride > 0) return cut;
    if (const Cut cut = make_cut(job, output, with_tail, 1, 1); cut.warp.stride > 0) return cut;
  }
  const int warps_x = job.shifts.nx() <= columns_per_warp ? 1 : 2;
  if (tiles <= most_tiles) {
    const Cut cut = make_cut(job, output, shape_for(tiles, 1), warps_x, 1);
    if (cut.shared_bytes() <= crowded_bytes * warps_x) return cut;
  }
  const WarpShape warp = tiles <= 2 * most_tiles ? shape_for(tiles, 2) : WarpShape{8, false};
  const Cut cut = make_cut(job, output, warp, warps_x, 2);
  if (cut.shared_bytes() <= most_shared_bytes) return cut;
  return make_cut(job, output, {std::min(warp.tiles, 8), false}, 1, 1);
}

/// A task: the shifts from (y, x) of the rectangle on.
struct Share {
  std::int64_t pair;
  ShiftStatistics statistics;
  ChunkRows window, reference;
  std::int64_t part;  ///< number among those of all pairs
  int x, y;
  short shifts_x, shifts_y;
  short first_x, last_x, first_y, last_y;  ///< of these, those at which the reference lies in the window
  bool continues_window;                   ///< the task before has the same

  Share() = default;
  __device__ Share(const Frame& frame, const Cut& cut, const PartTasks& tasks, const StatisticsTable& table,
                   std::int64_t task) {
    const Place place = tasks.place(task);
    pair = table.ordered(place.reference * tasks.windows + place.window);
    part = pair * tasks.parts() + place.part_y * tasks.parts_x + place.part_x;
    x = place.part_x * cut.columns(), y = place.part_y * cut.rows();
    shifts_x = min(cut.columns(), frame.nx - x), shifts_y = min(cut.rows(), frame.ny - y);
    continues_window = place.reference > 0;

    const int h = frame.reference.height, w = frame.reference.width;
    const std::int64_t index = frame.window_of(pair), reference_index = frame.reference_of(pair);
    const auto matrix = load_matrix<u8>(frame.search, index);
    const int from_y = frame.dy_min + y, from_x = frame.dx_min + x;
    first_x = max(matrix.x0 - from_x, 0), last_x = min(matrix.x1 - w - from_x, shifts_x - 1);
    first_y = max(matrix.y0 - from_y, 0), last_y = min(matrix.y1 - h - from_y, shifts_y - 1);
    const bool whole = first_x == 0 && first_y == 0 && last_x == shifts_x - 1 && last_y == shifts_y - 1;
    window = {whole && has_whole_chunks(frame.search, index) ? matrix.row(from_y) + from_x : nullptr,
              static_cast<int>(matrix.row_bytes)};
    const auto of_reference = load_matrix<u8>(frame.reference, reference_index);
    reference = {has_whole_chunks(frame.reference, reference_index) ? of_reference.origin : nullptr,
                 static_cast<int>(of_reference.row_bytes)};
    if (first_x > last_x || first_y > last_y) first_y = 0, last_y = -1;
    if (table.first && first_y <= last_y) statistics = table.of_shifts(frame, index, y, x);
  }

  __device__ void stage_window(const Frame& frame, const ChunkCells& cells, int stride, Word* shared) const {
    const int rows = frame.reference.height + shifts_y - 1, columns = frame.reference.width + shifts_x - 1;
    if (window.first) {
      if (cells.column * chunk_bytes < window.byte() + columns)
        copy_rows(window.first - window.byte(), window.row_bytes, rows, cells, stride, shared);
    } else {
      const auto matrix = load_matrix<u8>(frame.search, frame.window_of(pair));
      stage_words<4>(matrix, frame.dy_min + y, frame.dx_min + x, rows, (columns + 3) / 4, stride, shared);
    }
  }
  /// Between zeros that are there.
  __device__ void stage_reference(const Frame& frame, const ChunkCells& cells, int stride,
                                  Word* shared) const {
    const int h = frame.reference.height, w = frame.reference.width;
    if (reference.first) {
      copy_rows(reference.first - reference.byte(), reference.row_bytes, h, cells, stride,
                shared + stride + reference_pad / static_cast<int>(sizeof(Word)), reference.byte() + w);
    } else {
      const auto matrix = load_matrix<u8>(frame.reference, frame.reference_of(pair));
      stage_words<4>(matrix, 0, -reference_pad, h, stride, stride, shared + stride);
    }
  }
};

/// What a launch writes: sums, or the scores of all shifts, or the peaks of all pairs, or what its parts tell
/// of them.
struct Scoring {
  Word* sums = nullptr;
  Measure measure = Measure::zncc;
  ScoreKind kind = ScoreKind::score;
  float* scores = nullptr;
  Peak* peaks = nullptr;
  PartPeaks parts = {};
};

/// Without what rounding takes zncc and ncc beyond their range; keeps NaN.
__device__ inline float clamped(float value, Measure measure) {
  if (measure == Measure::ssd) return value;
  asm("max.NaN.f32 %0, %0, 0fBF800000;\n\tmin.NaN.f32 %0, %0, 0f3F800000;" : "+f"(value));
  return value;
}

/// What a lane holds of the shifts of a block: a column of a warp's rows; with a tail, one shift of the
/// tail's column, and the last lane the corner.
template <WarpShape shape>
struct LaneShifts {
  static constexpr int in_tiles = shape.shifts_y();
  static constexpr int count = in_tiles + (shape.tail ? 2 : 0);
  int first_row, lane, column;
  bool owned;  ///< false: another warp has their sums

  __device__ LaneShifts(int first_row_of_warp, int first_column, bool is_owned)
      : first_row(first_row_of_warp),
        lane(static_cast<int>(threadIdx.x % warp_size)),
        column(first_column + lane),
        owned(is_owned) {}
  /// body(i, row, column) for those of the tail and the corner.
  template <typename Body>
  __device__ void visit_tail(Body&& body) const {
    const int tail_column = column - lane + columns_per_warp;
    if constexpr (shape.tail) body(in_tiles, first_row + lane, tail_column);
    if constexpr (shape.tail)
      if (lane == warp_size - 1) body(in_tiles + 1, first_row + warp_size, tail_column);
  }
  /// body(i, row, column) for all of them.
  template <typename Body>
  __device__ void visit(Body&& body) const {
#pragma unroll
    for (int i = 0; i < in_tiles; ++i) body(i, first_row + i, column);
    visit_tail(body);
  }
};
/// A value for each of them.
template <WarpShape shape, typename Value>
using LaneValues = Value[LaneShifts<shape>::count];

/// Hands the sums of the tail to the lanes by their rows.
__device__ inline Word tail_of_lane(const Word (&sums)[4]) {
  const int lane = threadIdx.x % warp_size, holder = lane % 16 / 2 * 4;
  Word of_rows[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) of_rows[i] = __shfl_sync(0xffffffffu, sums[i], holder);
  const Word even = lane < 16 ? of_rows[0] : of_rows[2], odd = lane < 16 ? of_rows[1] : of_rows[3];
  return lane % 2 == 0 ? even : odd;
}

/// A block's shared memory.
struct Memory {
  Word *reference, *window;

  __device__ Memory(const Cut& cut, uint4* shared)
      : reference(reinterpret_cast<Word*>(shared)), window(reference + cut.reference_words()) {}
};

/// Rows or columns of shifts at which the reference lies in the window.
struct Defined {
  int first, last;

  __device__ bool holds(int i) const { return i >= first && i <= last; }
  __device__ int nearest(int i) const { return min(max(i, first), last); }
};

/// Turns a lane's sums into scores. whole: all rows are defined but for some of the last rows_per_tile.
template <Measure measure, bool whole, WarpShape shape>
__device__ void score_shifts(const Reference8<measure>& reference, const Share& share,
                             const LaneShifts<shape>& shifts, const LaneValues<shape, Word>& sums,
                             LaneValues<shape, float>& scores) {
  const Defined rows{share.first_y, share.last_y}, of_x{share.first_x, share.last_x};
  const auto exists = [&](int i) {
    return (whole && i < shifts.in_tiles - rows_per_tile) || rows.holds(shifts.first_row + i);
  };
  const float weight = of_x.holds(shifts.column) ? reference.weight : no_score;
  const WindowStatistics* const of_column =
      share.statistics.column(of_x.nearest(shifts.column)) + shifts.first_row * statistics_strip;
  constexpr int most_at_once = shape.tail ? 16 : 24;  // loads in flight: as many as there are registers for
  constexpr int at_once = shifts.in_tiles < most_at_once ? shifts.in_tiles : most_at_once;
#pragma unroll
  for (int first = 0; first < shifts.in_tiles; first += at_once) {
    WindowStatistics of_rows[at_once];
#pragma unroll
    for (int i = first; i < first + at_once && i < shifts.in_tiles; ++i)
      of_rows[i - first] = exists(i) ? load_statistics(of_column + i * statistics_strip) : WindowStatistics{};
#pragma unroll
    for (int i = first; i < first + at_once && i < shifts.in_tiles; ++i)
      scores[i] = exists(i) ? reference.score(sums[i], of_rows[i - first], weight) : no_score;
    __syncwarp();  // the compiler would have more loads in flight, and other values leave their registers
  }
  shifts.visit_tail([&](int i, int row, int column) {
    scores[i] = no_score;
    if (rows.holds(row) && of_x.holds(column))
      scores[i] =
          reference.score(sums[i], load_statistics(share.statistics.column(column) + row * statistics_strip),
                          reference.weight);
  });
}
template <Measure measure, WarpShape shape>
__device__ void score_shifts(const Reference8<measure>& reference, const Share& share,
                             const LaneShifts<shape>& shifts, const LaneValues<shape, Word>& sums,
                             LaneValues<shape, float>& scores) {
  if (share.first_y <= shifts.first_row && share.last_y >= shifts.first_row + shifts.in_tiles - rows_per_tile)
    score_shifts<measure, true, shape>(reference, share, shifts, sums, scores);
  else
    score_shifts<measure, false, shape>(reference, share, shifts, sums, scores);
}

/// Writes a lane's values to the surfaces of the job.
template <typename Shifts, typename Value>
__device__ void store_surface(const Frame& frame, const Share& share, const Shifts& shifts, Value* surfaces,
                              const auto& value_of_shift) {
  Value* const out = surfaces + (share.pair * frame.ny + share.y) * frame.nx + share.x;
  shifts.visit([&](int i, int row, int column) {
    if (column < share.shifts_x && row < share.shifts_y)
      out[std::int64_t{row} * frame.nx + column] = value_of_shift(i);
  });
}

/// Finds the peak of the block's scores, which are all of the pair. tile: shared memory for them.
template <WarpShape shape>
__device__ void find_peak(const Frame& frame, const Share& share, const Scoring& scoring,
                          const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores,
                          float scale, float* tile) {
  constexpr int stride = shape.tile_stride();
  ColumnBest best[1 + shape.tail];
  best[0].column = shifts.column;
  best[shape.tail].column = shape.tail ? shifts.column - shifts.lane + columns_per_warp : shifts.column;
  if (shifts.owned)
    shifts.visit([&](int i, int row, int column) {
      tile[row * stride + column] = scores[i];
      best[i < shifts.in_tiles ? 0 : shape.tail].take(scores[i]);
    });
  Peak* const out = scoring.peaks + share.pair;
  if constexpr (shape.alone())
    find_peak_of_warp<shape.tail>(frame, scoring.measure, best[0].score, best[shape.tail].score, tile, stride,
                                  out, scale);
  else
    find_peak(frame, scoring.measure, best, tile, stride, out, scale);
}

/// Leaves the best of the block's scores, which are a part of the pair's.
template <WarpShape shape>
__device__ void find_best(const Frame& frame, const Share& share, Best* bests,
                          const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores,
                          float scale) {
  Best best = Best::none();
  if (shifts.owned) {
    float highest = undefined;
    shifts.visit([&](int i, int, int) { highest = fmaxf(highest, scores[i]); });
    highest = fminf(max_of_warp(highest), __fdividef(1.0f, scale));  // as in find_peak
    int index = cuda::std::numeric_limits<int>::max();
    shifts.visit([&](int i, int row, int column) {
      if (scores[i] >= highest) index = min(index, (share.y + row) * frame.nx + share.x + column);
    });
    if (highest > undefined) best = {highest, __reduce_min_sync(0xffffffffu, index)};
  }
  best = best_of_warps(best);
  if (threadIdx.x == 0) bests[share.part] = best;
}

/// Adds what a part near the pair's peak has around it, and of the second one.
template <WarpShape shape>
__device__ void look_around(const Frame& frame, const Share& share, PairPeak& peak,
                            const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores,
                            float scale) {
  if (!shifts.owned) return;
  const int peak_y = peak.best.index / frame.nx, peak_x = peak.best.index - peak_y * frame.nx;
  float second = peak.beyond;
  shifts.visit([&](int i, int row, int column) {
    const int dx = share.x + column - peak_x, dy = share.y + row - peak_y;
    if (abs(dx) > 2 || abs(dy) > 2) second = fmaxf(second, scores[i]);
    const bool is_beside = abs(dx) <= 1 && abs(dy) <= 1 && scores[i] > undefined;
    if (is_beside) peak.around[neighbours / 2 + 3 * dy + dx] = scores[i] * scale;
  });
  second = max_of_warp(second) * scale;
  if (shifts.lane == 0 && second > undefined) atomicMax(&peak.second, ordered(__float_as_int(second + 0.0f)));
}

/// The sum of products at the shift under the tail; warps that share it do some rows each.
template <WarpShape shape>
__device__ Word multiply_corner(const Frame& frame, const Cut& cut, const Share& share, const Memory& memory,
                                const LaneShifts<shape>& shifts) {
  Word sum = 0;
  const int corner_row = shifts.first_row + warp_size,
            column = shifts.column - shifts.lane + columns_per_warp;
  const int first = shape.k_parts == 1 ? shifts.lane : threadIdx.x;
  for (int row = first; row < frame.reference.height; row += shape.k_parts * warp_size) {
    ByteStream window(memory.window + (corner_row + row) * cut.k.window_stride, share.window.byte() + column);
    ByteStream reference(memory.reference + (1 + row) * cut.k.reference_stride,
                         reference_pad + share.reference.byte());
    for (int x = 0; x < frame.reference.width; x += 4) sum = dot(window.next(), reference.next(), sum);
  }
  return __reduce_add_sync(0xffffffffu, sum);
}

/// Where a lane's words lie where window and reference begin with a chunk. What is found in few instructions
/// is found again for every task: it would cost registers.
template <WarpShape shape>
struct LaneWords {
  /// With small windows the code for an odd word costs as much as it saves.
  static constexpr bool takes_odd_words = shape.stride != small_stride;
  unsigned window, reference;  ///< addresses
  int first_column;            ///< of the warp

  __device__ LaneWords(const Cut& cut, const Memory& memory, const LaneShifts<shape>& shifts)
      : first_column(shifts.column - shifts.lane) {
    const auto [group, word, parity] = FragmentLane(shifts.lane);
    const int first_word = word + (has_first_part() ? 0 : words_of_first_part(cut.k));
    window = kept(shared_address(memory.window + (shifts.first_row + parity) * cut.k.window_stride +
                                 first_word + group));
    const int row = 1 + parity - group % 2;
    reference = kept(shared_address(memory.reference + row * cut.k.reference_stride + first_word));
  }
  /// Of the warp's part: as many words as the reference of `width` touches, moved by up to 3 bytes and by
  /// what the window does not begin with a word.
  __device__ ProductLayout layout(ProductLayout k, const Share& share, int width) const {
    const int words = words_of_first_part(k);
    const int all = (width + 6 + (share.window.byte() + first_column) % 4) / 4;
    k.words = shape.k_parts == 1 ? all : has_first_part() ? words : all - words;
    if (!takes_odd_words) k.words = round_up(k.words, 2);
    return k;
  }
  __device__ LaneAddresses start(const Share& share, int window_stride) const {
    const int group = static_cast<int>(kept(threadIdx.x) % warp_size) / 4, byte_shift = group / 2;
    const int of_window = share.window.byte() + first_column;
    const int of_reference = reference_pad + share.reference.byte() - byte_shift - of_window % 4;
    const unsigned at = window + (of_window & ~3);
    const unsigned tail = 4 * (2 * group * window_stride + columns_per_warp / 4 - group);
    return {at, at + tail, reference + (of_reference & ~3), 8 * of_reference};
  }

 private:
  __device__ static bool has_first_part() { return shape.k_parts == 1 || kept(threadIdx.x) < warp_size; }
  __device__ static int words_of_first_part(const ProductLayout& k) {
    return shape.k_parts == 1 ? k.words : (k.words + 1) / 4 * 2;
  }
};

/// The sums of products of a lane's shifts.
template <WarpShape shape>
__device__ void multiply_shifts(const Frame& frame, const Cut& cut, const Share& share, const Memory& memory,
                                const LaneShifts<shape>& shifts, const LaneWords<shape>& words,
                                LaneValues<shape, Word>& sums) {
  Word of_tiles[shape.tiles + shape.tail][4] = {};
  multiply_window<shape.tiles, shape.tail, LaneWords<shape>::takes_odd_words, shape.stride,
                  shape.reference_stride()>(words.layout(cut.k, share, frame.reference.width),
                                            words.start(share, cut.k.window_stride), of_tiles);
#pragma unroll
  for (int i = 0; i < shifts.in_tiles; ++i) sums[i] = of_tiles[i / 4][i % 4];
  if constexpr (shape.tail) sums[shifts.in_tiles] = tail_of_lane(of_tiles[shape.tiles]);
  if constexpr (shape.tail)
    sums[shifts.in_tiles + 1] = multiply_corner<shape>(frame, cut, share, memory, shifts);
}

/// The first warp gets what both have of the sums. `shared`: at least that large.
template <WarpShape shape>
__device__ void add_parts(Word* shared, LaneValues<shape, Word>& sums) {
  __syncthreads();
  const int lane = threadIdx.x % warp_size;
#pragma unroll
  for (int i = 0; i < LaneShifts<shape>::count; ++i)
    if (static_cast<int>(threadIdx.x) != lane) shared[i * warp_size + lane] = sums[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < LaneShifts<shape>::count; ++i)
    if (static_cast<int>(threadIdx.x) == lane) sums[i] += shared[i * warp_size + lane];
}

/// Turns the sums of a share into what the launch writes. again: near a peak that is known.
template <WarpShape shape, Result output>
__device__ void finish(const Frame& frame, const Share& share, const LaneShifts<shape>& shifts,
                       const ReferenceSums* of_warps, const LaneValues<shape, Word>& sums,
                       const Scoring& scoring, bool again, Word* tile) {
  if constexpr (output == Result::sums) {
    if (shifts.owned) store_surface(frame, share, shifts, scoring.sums, [&](int i) { return sums[i]; });
    return;
  }
  LaneValues<shape, float> scores;
  float scale = no_score;
  if (shifts.owned)
    visit_measure(scoring.measure, [&]<Measure measure> {
      const Reference8<measure> reference(frame.reference.height * frame.reference.width,
                                          sum_of_warps<shape.alone()>(of_warps));
      scale = reference.scale;
      score_shifts<measure, shape>(reference, share, shifts, sums, scores);
    });
  if constexpr (output == Result::peaks)
    find_peak<shape>(frame, share, scoring, shifts, scores, scale, reinterpret_cast<float*>(tile));
  if constexpr (output == Result::parts) {
    if (again)
      look_around<shape>(frame, share, scoring.parts.pairs[share.pair], shifts, scores, scale);
    else
      find_best<shape>(frame, share, scoring.parts.bests, shifts, scores, scale);
  }
  if (output == Result::scores && shifts.owned)
    store_surface(frame, share, shifts, scoring.scores, [&](int i) {
      const float score = fmaxf(clamped(scores[i] * scale, scoring.measure), undefined);
      return scoring.kind == ScoreKind::value ? value_of(score, scoring.measure) : score;
    });
}

template <std::size_t choice, Result output>
__global__ void __launch_bounds__(most_warps* warp_size, least_blocks(warp_shapes[choice], output))
    u8_tensor(const __grid_constant__ Frame frame, const __grid_constant__ Cut cut,
              const __grid_constant__ PartTasks tasks, const __grid_constant__ StatisticsTable statistics,
              const __grid_constant__ Scoring scoring) {
  constexpr WarpShape shape = warp_shapes[choice];
  constexpr int look_ahead = 8;  // tasks that a block's first lanes look up at once
  extern __shared__ uint4 shared[];
  constexpr bool keeps_window = output != Result::peaks && shape.k_parts == 1;
  __shared__ Share shares[2 * look_ahead];
  __shared__ ReferenceSums of_warps[most_warps];
  const Memory memory(cut, shared);
  const int window_stride = shape.stride > 0 ? shape.stride : cut.k.window_stride;
  const int reference_stride = shape.stride > 0 ? shape.reference_stride() : cut.k.reference_stride;
  const int warp = shape.alone() ? 0 : threadIdx.x / warp_size;
  // The warp's place; of those that share k, the first has all shifts.
  const int warp_y = shape.k_parts > 1 ? 0 : cut.warps_x == 1 ? warp : warp / 2;
  const int warp_x = shape.k_parts > 1 ? 0 : warp - warp_y * cut.warps_x;
  const LaneShifts<shape> shifts(warp_y * shape.shifts_y(), warp_x * shape.columns(),
                                 shape.k_parts == 1 || warp == 0);
  const LaneWords<shape> words(cut, memory, shifts);
  const ChunkCells of_window(cut.window_chunks), of_reference(cut.reference_chunks);
  const int count = tasks.of_block();
  const auto look_up = [&](int task) {
    if (const int i = threadIdx.x; i < min(look_ahead, count - task))
      new (shares + (task + i) % (2 * look_ahead))
          Share(frame, cut, tasks, statistics, tasks.task_of_block(task + i));
  };
  const auto stage = [&](int task) {
    const Share& share = shares[task % (2 * look_ahead)];
    if (!keeps_window || task == 0 || !share.continues_window)
      share.stage_window(frame, of_window, window_stride, memory.window);
    share.stage_reference(frame, of_reference, reference_stride, memory.reference);
  };

  clear_reference(cut.reference_rows() - 1, reference_stride, memory.reference);
  look_up(0);
  wait_for_block<shape.alone()>();
  if (count > 0) stage(0);
  for (int task = 0; task < count; ++task) {
    const Share& share = shares[task % (2 * look_ahead)];
    wait_for_copies();
    wait_for_block<shape.alone()>();
    if (task % look_ahead == look_ahead - 1) look_up(task + 1);
    sum_reference<output != Result::sums>(memory.reference + reference_stride + reference_pad / sizeof(Word),
                                          reference_stride, frame.reference.height, share.reference.byte(),
                                          cut.reference_chunks.divisor, of_warps);
    wait_for_block<shape.alone()>();
    LaneValues<shape, Word> sums;
    multiply_shifts<shape>(frame, cut, share, memory, shifts, words, sums);
    if constexpr (shape.k_parts == 2) add_parts<shape>(memory.window, sums);
    wait_for_block<shape.alone()>();
    // The copies for the next task run while this one is scored, unless its scores are in their way.
    if (output != Result::peaks && task + 1 < count) stage(task + 1);
    finish<shape, output>(frame, share, shifts, of_warps, sums, scoring, tasks.list.parts != nullptr,
                          memory.window);
    if (output == Result::peaks && task + 1 < count) {
      wait_for_block<shape.alone()>();
      stage(task + 1);
    }
  }
}

template <std::size_t choice, Result output>
void launch_shape(const NccJob& job, const Cut& cut, PartTasks tasks, const StatisticsTable& statistics,
                  const Scoring& scoring, StreamHandle stream) {
  const auto kernel = u8_tensor<choice, output>;
  const std::int64_t resident = resident_blocks(kernel, cut.threads(), cut.shared_bytes());
  const std::int64_t blocks = tasks.deal(resident, !warp_shapes[choice].alone());
  kernel<<<static_cast<unsigned>(blocks), cut.threads(), cut.shared_bytes(), stream>>>(
      make_frame(job), cut, tasks, statistics, scoring);
}

/// Launches the cut's shape: what is instantiated is warp_shapes itself.
template <Result output>
void launch(const NccJob& job, const Cut& cut, const PartTasks& tasks, const StatisticsTable& statistics,
            const Scoring& scoring, StreamHandle stream) {
  const auto try_shape = [&]<std::size_t i>() {
    if constexpr (is_compiled(warp_shapes[i], output))
      if (cut.warp == warp_shapes[i]) launch_shape<i, output>(job, cut, tasks, statistics, scoring, stream);
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) { (try_shape.template operator()<i>(), ...); }
  (std::make_index_sequence<std::size(warp_shapes)>{});
  check_launch(describe("cuda-u8-tensor", job));
}
template <Result output>
void launch(const NccJob& job, const StatisticsTable& statistics, const Scoring& scoring,
            StreamHandle stream) {
  const Cut cut = choose_cut(job, output);
  launch<output>(job, cut, PartTasks(Tasks(job, cut.columns(), cut.rows())), statistics, scoring, stream);
}

/// Peaks of pairs that several blocks have a part of each; `memory`: PartPeaks::scratch.
void launch_peaks_of_parts(const NccJob& job, StatisticsTable statistics, Measure measure, Peak* out,
                           std::byte* memory, StreamHandle stream) {
  const Cut cut = choose_cut(job, Result::parts);
  const Tasks tasks(job, cut.columns(), cut.rows());
  const PartPeaks peaks(memory, tasks, job.pairs);
  const Scoring scoring{.measure = measure, .parts = peaks};
  launch<Result::parts>(job, cut, PartTasks(tasks), statistics, scoring, stream);
  launch_merged_parts(job, tasks, cut.columns(), cut.rows(), peaks, stream);
  statistics.order = nullptr;
  launch<Result::parts>(job, cut, PartTasks(tasks, peaks.near), statistics, scoring, stream);
  launch_part_peaks(job, measure, peaks, out, stream);
}

Result result_for_peaks(const NccJob& job) {
  const Cut cut = choose_cut(job, Result::peaks);
  return cut.columns() >= job.shifts.nx() && cut.rows() >= job.shifts.ny() ? Result::peaks : Result::parts;
}

bool fits(const NccJob& job, const Cut& cut) {
  const int row_bytes = cut.columns() + job.reference.width - 1;  // copied by a block at once
  return cut.shared_bytes() <= most_shared_bytes && most_chunks(row_bytes) <= cut.threads();
}

}  // namespace

std::string refuses_u8_tensor(const NccJob& job) {
  if (job.sums != Surfaces::Type::u32) return "cuda-u8-tensor sums in 32 bits.";
  if (job.shifts.count() > 0 && !fits(job, choose_cut(job, Result::sums)))
    return "cuda-u8-tensor does references up to about 255x255.";
  return {};
}

bool u8_tensor_scores_fit(const NccJob& job, bool peaks) {
  const Result output = peaks ? result_for_peaks(job) : Result::scores;
  const Cut cut = choose_cut(job, output);
  const bool small = job.reference.height * job.reference.width <= 257 * 257;  // 32 bits hold the squares
  return small && statistics_fit(job) && fits(job, cut) && is_compiled(cut.warp, output);
}

void launch_u8_tensor(const NccJob& job, void* out, StreamHandle stream) {
  launch<Result::sums>(job, {}, {.sums = static_cast<Word*>(out)}, stream);
}

void launch_u8_tensor_scores(const NccJob& job, Measure measure, ScoreKind kind, float* scores,
                             Workspace& workspace, StreamHandle stream) {
  with_statistics(
      job, measure, {}, workspace, stream,
      [&](const NccJob& part, std::int64_t first_pair, const StatisticsTable& statistics, std::byte*) {
        float* const of_part = scores + first_pair * job.shifts.count();
        launch<Result::scores>(part, statistics, {.measure = measure, .kind = kind, .scores = of_part},
                               stream);
      });
}

void launch_u8_tensor_peaks(const NccJob& job, Measure measure, Peak* peaks, Workspace& workspace,
                            StreamHandle stream) {
  const Cut cut = choose_cut(job, Result::parts);
  const bool in_parts = result_for_peaks(job) == Result::parts;
  const int parts = Tasks(job, cut.columns(), cut.rows()).parts();
  with_statistics(job, measure, in_parts ? PartPeaks::scratch(parts) : Scratch{}, workspace, stream,
                  [&](const NccJob& part, std::int64_t first_pair, const StatisticsTable& statistics,
                      std::byte* scratch) {
                    Peak* const out = peaks + first_pair;
                    if (launch_u8_sparse_peaks(part, statistics, measure, out, stream)) return;
                    if (in_parts)
                      launch_peaks_of_parts(part, statistics, measure, out, scratch, stream);
                    else
                      launch<Result::peaks>(part, statistics, {.measure = measure, .peaks = out}, stream);
                  });
}

}  // namespace dic::kernels
