#include <algorithm>
#include <iterator>

#include "common/shared_memory.hpp"
#include "ncc/scoring.cuh"
#include "ncc/u8_products.cuh"
#include "ncc/u8_window_sums.cuh"
#include "ncc/variants.hpp"

// Exact sums of u8 products on tensor cores (u8_products.cuh says how), and their scores and peaks. A block
// does the shifts of one pair, or a share of them, out of shared memory.
namespace dic::kernels {
namespace {

constexpr int most_warps = 4;
constexpr int most_shared_bytes = 160 * 1024;
constexpr int crowded_bytes = 22 * 1024;  ///< more shared memory for one warp leaves the SM too empty

enum class Result {
  sums,    ///< u32
  scores,  ///< f32: one ScoreKind per shift
  peaks    ///< one Peak per pair; a block covers all shifts
};

constexpr int small_stride = 20, large_stride = 44;

/// What a warp computes: `tiles` products one above the other, and with a tail one more that is 4 columns by
/// 32 rows, for the one column that 2 R + 1 shifts are often too wide; the corner under it, by itself. Two
/// warps share the k of a tail and a large window.
struct WarpShape {
  int tiles = 0;
  bool tail = false;
  int stride = 0;  ///< of the window's rows in shared memory, in words; 0: any

  bool operator==(const WarpShape&) const = default;
  __host__ __device__ constexpr int rows() const { return tiles * rows_per_tile; }
  /// The same for the reference.
  __host__ __device__ constexpr int reference_stride() const { return stride == large_stride ? 28 : stride; }
  __host__ __device__ constexpr int k_parts() const { return tail && stride == large_stride ? 2 : 1; }
};
/// Those that are compiled; the known strides come first.
constexpr WarpShape warp_shapes[]{WarpShape{8, false, small_stride},
                                  WarpShape{8, false, large_stride},
                                  WarpShape{9, true, small_stride},
                                  WarpShape{9, true, large_stride},
                                  WarpShape{1, false},
                                  WarpShape{2, false},
                                  WarpShape{3, false},
                                  WarpShape{4, false},
                                  WarpShape{5, false},
                                  WarpShape{6, false},
                                  WarpShape{8, false},
                                  WarpShape{9, false}};

/// Blocks of most_warps that an SM must have registers for: 12 warps without spills are faster than 16 with
/// them. The compiler needs more registers for older devices.
__host__ __device__ constexpr int least_blocks(const WarpShape& shape, Result output) {
  if (shape.tiles < 8) return 4;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return 2;
#else
  if (output == Result::scores) return shape.tail ? 2 : 3;
  return shape.tail || shape.stride == small_stride ? 3 : 4;
#endif
}

/// How a block cuts its work: warps_x x warps_y warps over one stretch of shared memory.
struct Cut {
  WarpShape warp;
  int warps_x = 0, warps_y = 0;  ///< warps_x is 1 or 2, with a tail 1
  ProductLayout k;
  int window_rows = 0;
  int window_words = 0;
  WindowSumsLayout sums = {};  ///< empty where no scores are computed
  bool keeps_window = false;   ///< its references share windows: their sums are kept, beside the reference

  __host__ __device__ int columns() const { return warps_x * columns_per_warp + (warp.tail ? 1 : 0); }
  __host__ __device__ int rows() const { return warps_y * warp.rows(); }
  /// Rows -1 .. k.rows - 1.
  __host__ __device__ int reference_words() const { return (k.rows + 1) * k.reference_stride; }
  /// Where the changes of sums begin, from the reference on; otherwise they take its place.
  __host__ __device__ int changes_at() const { return keeps_window ? reference_words() : 0; }
  /// Both; a step ahead loads 6 rows after the reference without using them.
  __host__ __device__ int reference_and_changes() const {
    const int loaded = (k.rows + 7) * k.reference_stride, end = changes_at() + 2 * sums.changes();
    const int exchanged = warp.k_parts() > 1 ? (warp.rows() + 2) * warp_size : 0;
    return max(max(loaded, end), exchanged);
  }
  int shared_bytes() const {
    return static_cast<int>(sizeof(Word)) * (window_words + reference_and_changes() + 2 * sums.columns());
  }
  __host__ __device__ static int max(int a, int b) { return a > b ? a : b; }
  int threads() const { return warps_x * warps_y * warp.k_parts() * warp_size; }
};

/// Rows of whole chunks that begin 12 or 20 banks apart: two neighbouring rows of 8 words never meet in one
/// bank.
int spread(int words) {
  int stride = round_up(words, 4);
  while (stride % 32 != 12 && stride % 32 != 20) stride += 4;
  return stride;
}

/// True for what `turn_window` does: a window of one warp that is needed once.
bool is_small(const NccJob& job, const Cut& cut) {
  return cut.k.window_stride == small_stride && cut.threads() == warp_size && !cut.keeps_window &&
         job.reference.height + std::min(cut.rows(), job.shifts.ny()) - 1 <= WindowView<true>::turned_rows;
}
/// The shape takes a known stride where one fits and is compiled.
WarpShape with_stride(const NccJob& job, const Cut& cut, int reference_stride) {
  WarpShape shape = cut.warp;
  for (const int stride : {small_stride, large_stride}) {
    shape.stride = stride;
    const bool fits = stride == small_stride ? is_small(job, cut) : cut.k.window_stride == stride;
    if (fits && !(shape.k_parts() > 1 && cut.keeps_window) && reference_stride <= shape.reference_stride() &&
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
  cut.k.words = round_up(w + 3 + 3, 8) / 4;
  cut.window_rows = cut.k.rows + cut.rows() - 2;
  cut.keeps_window = job.form == Form::n_to_m;
  // The first word of a warp's last step, and what the copy of whole chunks writes.
  cut.k.window_stride = spread(
      std::max(cut.k.words + cut.columns() / 4 + 2, most_chunks(cut.columns() + w - 1) * chunk_bytes / 4));
  const int reference_stride = round_up(reference_pad / 4 + 4 + cut.k.words, 4);
  cut.warp = with_stride(job, cut, reference_stride);
  cut.window_words = std::max(cut.window_rows * cut.k.window_stride,
                              cut.warp.stride == small_stride ? WindowView<true>::size_turned : 0);
  cut.k.reference_stride = cut.warp.stride > 0 ? cut.warp.reference_stride() : reference_stride;
  if (output != Result::sums)
    cut.sums = WindowSumsLayout(std::min(cut.columns(), job.shifts.nx()),
                                std::max(std::min(cut.rows(), job.shifts.ny()) - 1, cut.rows() - 2), w);
  return cut;
}

constexpr int most_tiles = std::end(warp_shapes)[-1].tiles;

/// The lowest shape that covers `tiles` with warps_y warps.
WarpShape shape_for(int tiles, int warps_y) {
  return *std::ranges::find_if(warp_shapes, [&](const WarpShape& shape) {
    return !shape.tail && shape.stride == 0 && shape.tiles * warps_y >= tiles;
  });
}

/// The cut for a job; shared_bytes() tells whether it fits.
Cut choose_cut(const NccJob& job, Result output) {
  const int tiles = (job.shifts.ny() + rows_per_tile - 1) / rows_per_tile;
  if (job.shifts.nx() == columns_per_warp + 1 && job.shifts.ny() <= warp_size + 1) {
    const Cut cut = make_cut(job, output, {9, true}, 1, 1);
    if (cut.warp.stride > 0) return cut;
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

/// The tasks of a job: a pair each, or one of parts_x x parts_y parts of its shifts. References of one window
/// follow each other where a job has all their pairs.
struct Tasks {
  std::int64_t references = 1, windows = 0;
  int parts_x = 0, parts_y = 0;

  Tasks(const NccJob& job, const Cut& cut)
      : windows(job.pairs),
        parts_x((job.shifts.nx() + cut.columns() - 1) / cut.columns()),
        parts_y((job.shifts.ny() + cut.rows() - 1) / cut.rows()) {
    const std::int64_t count = job.search.count;
    if (job.form != Form::n_to_m || job.first_pair % count != 0 || job.pairs % count != 0) return;
    references = job.pairs / count;
    windows = count;
  }
  __host__ __device__ std::int64_t count() const { return references * windows * parts_x * parts_y; }
};
/// Walks through the tasks.
struct Cursor {
  std::int64_t reference, window;
  int part_x, part_y;

  __device__ Cursor(const Tasks& tasks, std::int64_t task) {
    const std::int64_t place = task / tasks.references, part = place / tasks.windows;
    reference = task - place * tasks.references;
    window = place - part * tasks.windows;
    part_y = static_cast<int>(part / tasks.parts_x);
    part_x = static_cast<int>(part) - part_y * tasks.parts_x;
  }
  /// True where the next task is in another window or part of it.
  __device__ bool advance(const Tasks& tasks) {
    if (++reference < tasks.references) return false;
    reference = 0;
    if (++window < tasks.windows) return true;
    window = 0;
    if (++part_x < tasks.parts_x) return true;
    part_x = 0;
    ++part_y;
    return true;
  }
};

/// A task: the shifts from (y, x) of the rectangle on.
struct Share {
  std::int64_t pair;
  int x, y, shifts_x, shifts_y;
  int first_x, last_x, first_y, last_y;  ///< of these shifts, those at which the reference lies in the window
  int window_byte, reference_byte;       ///< where rows begin in shared memory

  __device__ Share(const Frame& frame, const Cut& cut, const Tasks& tasks, const Cursor& at)
      : pair(at.reference * tasks.windows + at.window),
        x(at.part_x * cut.columns()),
        y(at.part_y * cut.rows()),
        shifts_x(min(cut.columns(), frame.nx - x)),
        shifts_y(min(cut.rows(), frame.ny - y)) {}

  __device__ void stage_window(const Frame& frame, const Cut& cut, const ChunkCells& cells, Word* shared) {
    const int h = frame.reference.height, w = frame.reference.width;
    const std::int64_t index = frame.window_of(pair);
    const auto window = load_matrix<u8>(frame.search, index);
    const int from_y = frame.dy_min + y, from_x = frame.dx_min + x;
    window_byte = kernels::stage_window(frame.search, window, index, from_y, from_x, h + shifts_y - 1,
                                        w + shifts_x - 1, cells, cut.k.window_stride, shared);
    first_x = window.x0 - from_x;
    last_x = min(window.x1 - w - from_x, shifts_x - 1);
    first_y = window.y0 - from_y;
    last_y = min(window.y1 - h - from_y, shifts_y - 1);
  }
  /// Between zeros that are there, or not.
  __device__ void stage_reference(const Frame& frame, const Cut& cut, const ChunkCells& cells, bool has_zeros,
                                  Word* shared) {
    const std::int64_t index = frame.reference_of(pair);
    const auto reference = load_matrix<u8>(frame.reference, index);
    const int stride = cut.k.reference_stride;
    reference_byte =
        has_zeros ? kernels::stage_reference(frame.reference, reference, index, cells, stride, shared)
                  : kernels::stage_reference(frame.reference, reference, index, cut.k.rows, stride, shared);
  }
  __device__ bool has_column(int column) const { return column >= first_x && column <= last_x; }
  __device__ bool has_row(int row) const { return row >= first_y && row <= last_y; }
};

/// What scoring needs to know of a job.
struct Scoring {
  Measure measure;
  ScoreKind kind;
  float* scores;
  Peak* peaks;
};

/// A score that is not defined or has no contrast: smaller than any number, and 0 / 0 already is one.
constexpr float no_score = cuda::std::numeric_limits<float>::quiet_NaN();

/// Keeps NaN.
__device__ inline float clamped(float value) {
  asm("max.NaN.f32 %0, %0, 0fBF800000;\n\tmin.NaN.f32 %0, %0, 0f3F800000;" : "+f"(value));
  return value;
}

/// A reference of n elements as the scores of its shifts need it.
template <Measure measure>
struct Reference {
  Word n;
  WindowSum sums;
  float scale;  ///< zncc, ncc: inverse root of its variation; no_score without contrast

  __device__ Reference(int elements, const WindowSum& of_elements) : n(elements), sums(of_elements) {
    const std::int64_t variation =
        measure == Measure::zncc ? n_times(sums.squares) - square(sums.sum) : std::int64_t{sums.squares};
    scale = measure == Measure::ssd ? 1.0f
            : variation > 0         ? inverse_root(static_cast<float>(variation))
                                    : no_score;
  }
  /// `scale`: that of the reference, or no_score.
  __device__ float score(Word product, const WindowSum& window, float scale) const {
    if constexpr (measure == Measure::ssd)
      return -scale * static_cast<float>(sums.squares + window.squares - 2 * product);
    if constexpr (measure == Measure::ncc)
      return clamped(static_cast<float>(product) *
                     (scale * inverse_root(static_cast<float>(window.squares))));
    const std::int64_t covariance =
        multiply_add_wide(-static_cast<int>(sums.sum), window.sum, n_times(product));
    const std::int64_t variation =
        multiply_add_wide(-static_cast<int>(window.sum), window.sum, n_times(window.squares));
    return clamped(static_cast<float>(covariance) * (scale * inverse_root(static_cast<float>(variation))));
  }

 private:
  __device__ std::int64_t n_times(Word value) const {
    return static_cast<std::int64_t>(std::uint64_t{n} * value);
  }
  __device__ static std::int64_t square(Word value) { return std::int64_t{value} * value; }
};

/// What a lane holds of the shifts of a block: two neighbouring columns in every second row; with a tail, one
/// shift of the tail's column, and the last lane the corner.
template <WarpShape shape>
struct LaneShifts {
  static constexpr int in_tiles = 4 * shape.tiles;
  static constexpr int count = in_tiles + (shape.tail ? 2 : 0);
  int first_row, parity, column, tail_row;
  bool owned;  ///< false: another warp has their sums

  __device__ LaneShifts(const FragmentLane& lane, int first_row_of_warp, int first_column, bool is_owned)
      : first_row(first_row_of_warp),
        parity(lane.parity),
        column(first_column + 4 * lane.group + 2 * lane.word),
        tail_row(first_row + static_cast<int>(threadIdx.x % warp_size)),
        owned(is_owned) {}
  __device__ int row_of(int i) const { return first_row + parity + i / 2 * 2; }
  __device__ int column_of(int i) const { return column + i % 2; }
  /// body(i, row, column) for those of the tail and the corner.
  template <typename Body>
  __device__ void visit_tail(Body&& body) const {
    if constexpr (shape.tail)
      if (tail_row < first_row + shape.rows()) body(in_tiles, tail_row, columns_per_warp);
    if constexpr (shape.tail)
      if (tail_row == first_row + warp_size - 1) body(in_tiles + 1, tail_row + 1, columns_per_warp);
  }
  /// body(i, row, column) for all of them.
  template <typename Body>
  __device__ void visit(Body&& body) const {
#pragma unroll
    for (int i = 0; i < in_tiles; ++i) body(i, row_of(i), column_of(i));
    visit_tail(body);
  }
};
/// A value for each of them.
template <WarpShape shape, typename Value>
using LaneValues = Value[LaneShifts<shape>::count];

/// Hands the sums of the tail to the lanes by their rows.
__device__ inline Word tail_of_lane(const Word (&sums)[4]) {
  const int lane = threadIdx.x % warp_size;
  const int holder = lane % 16 / 2 * 4 + lane % 2 * 2;
  const Word upper = __shfl_sync(0xffffffffu, sums[0], holder);
  const Word lower = __shfl_sync(0xffffffffu, sums[2], holder);
  return lane < 16 ? upper : lower;
}

/// A block's shared memory.
struct Memory {
  Word *window, *reference;
  WindowSum *changes, *columns;

  __device__ Memory(const Cut& cut, uint4* shared)
      : window(reinterpret_cast<Word*>(shared)),
        reference(window + cut.window_words),
        changes(reinterpret_cast<WindowSum*>(reference + cut.changes_at())),
        columns(reinterpret_cast<WindowSum*>(reference + cut.reference_and_changes())) {}
};

/// The sum of two lanes that differ in parity alone.
__device__ inline WindowSum of_both_parities(WindowSum sum) {
  sum.add({__shfl_xor_sync(0xffffffffu, sum.sum, 2), __shfl_xor_sync(0xffffffffu, sum.squares, 2)});
  return sum;
}

/// A block's tables of the sums under its shifts.
struct WindowSums {
  WindowSum* columns;
  WindowSum* changes;
  int stride, last_pair, width;

  __device__ WindowSums(const Cut& cut, const Memory& memory, int width_of_reference)
      : columns(memory.columns),
        changes(memory.changes),
        stride(cut.sums.stride),
        last_pair(cut.sums.last_pair()),
        width(width_of_reference) {}

  /// Of a column that may lie beyond the shifts.
  __device__ int pair_column(int column) const { return min(column, last_pair); }
  /// Under two neighbouring columns of shifts, the first of them even, in row first_row + parity. Lanes of
  /// other parity have the same columns and do half of the additions.
  __device__ WindowSumPair at(int first_row, int parity, int column) const {
    WindowSumPair part{};
#pragma unroll 4
    for (int i = 2 * parity; i + 1 < width; i += 4) part.add(load_pair(columns + column + i));
    part.left.add(part.right);
    if (parity == 0 && width % 2 != 0) part.left.add(columns[column + width - 1]);
    part.right = part.left;
    for (int row = parity; row < first_row; row += 2) part.add(change(row, column));
    WindowSumPair sum{of_both_parities(part.left), of_both_parities(part.right)};
    sum.right.add(columns[column + width]);
    sum.right.subtract(columns[column]);
    if (parity == 1) sum.add(change(first_row, column));
    return sum;
  }
  __device__ WindowSumPair change(int row, int column) const {
    return load_pair(changes + row * stride + column);
  }
  /// Under one column of shifts, of which every lane has one of `rows` rows.
  __device__ WindowSum at_lane(int first_row, int rows, int column) const {
    constexpr unsigned all = 0xffffffffu;
    const int lane = threadIdx.x % warp_size;
    WindowSum before{0, 0};
    for (int i = lane; i < width; i += warp_size) before.add(columns[column + i]);
    for (int i = lane; i < first_row; i += warp_size) before.add(changes[i * stride + column]);
    WindowSum sum =
        lane > 0 && lane < rows ? changes[(first_row + lane - 1) * stride + column] : WindowSum{0, 0};
#pragma unroll
    for (int step = 1; step < warp_size; step *= 2) {
      const WindowSum other{__shfl_up_sync(all, sum.sum, step), __shfl_up_sync(all, sum.squares, step)};
      if (lane >= step) sum.add(other);
    }
    sum.add({__reduce_add_sync(all, before.sum), __reduce_add_sync(all, before.squares)});
    return sum;
  }
};

/// Turns a lane's sums into scores. `sum`: those under its first shifts.
template <Measure measure, WarpShape shape>
__device__ void score_shifts(const Reference<measure>& reference, const Share& share,
                             const LaneShifts<shape>& shifts, const WindowSums& window, WindowSumPair sum,
                             const LaneValues<shape, Word>& sums, LaneValues<shape, float>& scores) {
  const int column = window.pair_column(shifts.column);
  const float left_scale = share.has_column(shifts.column) ? reference.scale : no_score;
  const float right_scale = share.has_column(shifts.column + 1) ? reference.scale : no_score;
#pragma unroll
  for (int i = 0; i < shifts.in_tiles; i += 2) {
    scores[i] = reference.score(sums[i], sum.left, left_scale);
    scores[i + 1] = reference.score(sums[i + 1], sum.right, right_scale);
    if (i + 2 == shifts.in_tiles) break;
    sum.add(window.change(shifts.row_of(i), column));
    sum.add(window.change(shifts.row_of(i) + 1, column));
  }
#pragma unroll
  for (int t = 0; t < shape.tiles; ++t) {
    const int row = shifts.first_row + t * rows_per_tile;
    if (share.has_row(row) && share.has_row(row + rows_per_tile - 1)) continue;
#pragma unroll
    for (int i = 4 * t; i < 4 * t + 4; ++i)
      if (!share.has_row(shifts.row_of(i))) scores[i] = no_score;
  }
  if constexpr (shape.tail) {
    WindowSum of_row = window.at_lane(shifts.first_row, shape.rows(), columns_per_warp);
    const float scale = share.has_column(columns_per_warp) ? reference.scale : no_score;
    shifts.visit_tail([&](int i, int row, int) {
      if (i > shifts.in_tiles) of_row.add(window.changes[(row - 1) * window.stride + columns_per_warp]);
      scores[i] = reference.score(sums[i], of_row, share.has_row(row) ? scale : no_score);
    });
  }
}

template <typename Body>
__device__ void visit_measure(Measure measure, Body&& body) {
  switch (measure) {
    case Measure::zncc:
      return body.template operator()<Measure::zncc>();
    case Measure::ncc:
      return body.template operator()<Measure::ncc>();
    default:
      return body.template operator()<Measure::ssd>();
  }
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

/// The best of a lane's scores that are far from the peak; stores those next to it, row by row.
template <WarpShape shape>
__device__ float look_around(const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores,
                             int peak_row, int peak_column, float* neighbours) {
  float best = undefined;
  const auto look = [&](int i, int row, int column) {
    const int down = row - peak_row + 1, right = column - peak_column + 1;
    if (static_cast<unsigned>(down) < 3 && static_cast<unsigned>(right) < 3)
      neighbours[3 * down + right] = scores[i];
    const bool near = static_cast<unsigned>(down + 1) < 5 && static_cast<unsigned>(right + 1) < 5;
    if (!near) best = fmaxf(best, scores[i]);
  };
#pragma unroll
  for (int t = 0; t < shape.tiles; ++t) {
    const int below_peak = shifts.first_row + t * rows_per_tile - peak_row;
    const bool near_peak = below_peak > -rows_per_tile - 2 && below_peak < 3;
#pragma unroll
    for (int i = 4 * t; i < 4 * t + 4; ++i) {
      if (near_peak)
        look(i, shifts.row_of(i), shifts.column_of(i));
      else
        best = fmaxf(best, scores[i]);
    }
  }
  shifts.visit_tail(look);
  return best;
}

/// Finds the peak of the block's scores, which are all of the pair.
template <WarpShape shape>
__device__ void find_peak(const Frame& frame, const Share& share, const Scoring& scoring,
                          const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores) {
  __shared__ float neighbours[9];
  Best of_lane = Best::none();
  if (shifts.owned)
    shifts.visit([&](int i, int row, int column) {
      if (scores[i] > of_lane.score) of_lane = {scores[i], row << 16 | column};
    });
  const Best best = best_of_block(of_lane);
  const int peak_row = best.index >> 16, peak_column = best.index & 0xffff;
  float second = undefined;
  if (shifts.owned) second = look_around<shape>(shifts, scores, peak_row, peak_column, neighbours);
  second = best_of_block({second, 0}).score;
  __syncthreads();  // the neighbours are there
  if (threadIdx.x < warp_size)
    store_peak(frame, scoring.measure, {best.score, peak_column, peak_row}, second,
               scoring.peaks + share.pair,
               [&](int x, int y) { return neighbours[3 * (y - peak_row + 1) + x - peak_column + 1]; });
}

/// The sum of products at the shift under the tail; every warp does some rows.
__device__ inline Word multiply_corner(const Frame& frame, const Cut& cut, const Share& share,
                                       const Memory& memory) {
  Word sum = 0;
  for (int row = threadIdx.x; row < frame.reference.height; row += blockDim.x) {
    ByteStream<> window(memory.window + (warp_size + row) * cut.k.window_stride,
                        share.window_byte + columns_per_warp);
    ByteStream<> reference(memory.reference + (1 + row) * cut.k.reference_stride,
                           reference_pad + share.reference_byte);
    for (int x = 0; x < frame.reference.width; x += 4) sum = dot(window.next(), reference.next(), sum);
  }
  return __reduce_add_sync(0xffffffffu, sum);
}

/// The sums of products of a lane's shifts.
template <WarpShape shape>
__device__ void multiply_shifts(const Frame& frame, const Cut& cut, const Share& share, const Memory& memory,
                                const FragmentLane& lane, const LaneShifts<shape>& shifts,
                                LaneValues<shape, Word>& sums) {
  const auto [group, word, parity] = lane;
  const int first_column = shifts.column - 4 * group - 2 * word;
  const Word* const window = memory.window + (shifts.first_row + parity) * cut.k.window_stride +
                             (first_column + share.window_byte) / 4 + word;
  const int reference_at = reference_pad + share.reference_byte - group % 4 - share.window_byte % 4;
  ProductLayout k = cut.k;
  int first_word = 0;
  if constexpr (shape.k_parts() == 2) {
    const int words = round_up(k.words, 4) / 2;
    first_word = threadIdx.x < warp_size ? 0 : words;
    k.words = min(words, k.words - first_word);
  }
  Word of_tiles[shape.tiles + shape.tail][4] = {};
  multiply_window<shape.tiles, shape.tail, shape.stride, shape.reference_stride()>(
      k, window + first_word + group,
      window + first_word + 2 * group * cut.k.window_stride + columns_per_warp / 4,
      memory.reference + (1 + parity - group / 4) * cut.k.reference_stride + first_word + word +
          reference_at / 4,
      8 * (reference_at % 4), of_tiles);
#pragma unroll
  for (int i = 0; i < shifts.in_tiles; ++i) sums[i] = of_tiles[i / 4][i % 4];
  if constexpr (shape.tail) sums[shifts.in_tiles] = tail_of_lane(of_tiles[shape.tiles]);
  if constexpr (shape.tail) sums[shifts.in_tiles + 1] = multiply_corner(frame, cut, share, memory);
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

/// Fills the tables of the sums under the shifts. A small window does not survive it.
template <WarpShape shape>
__device__ void sum_windows(const Cut& cut, const Share& share, int height, int width, const Memory& memory) {
  const auto sum = [&](const auto& window) {
    sum_columns(cut.sums, window, share.window_byte, height, memory.columns);
    sum_changes(cut.sums, window, share.window_byte, height, width, share.shifts_y - 1, memory.changes);
  };
  if constexpr (shape.stride == small_stride)
    sum(turn_window(memory.window, shape.stride));
  else
    sum(WindowView<false>{memory.window, cut.k.window_stride});
}

template <std::size_t choice, Result output>
__global__ void __launch_bounds__(most_warps* warp_size, least_blocks(warp_shapes[choice], output))
    u8_tensor(const __grid_constant__ Frame frame, const __grid_constant__ Cut cut,
              const __grid_constant__ Tasks tasks, Word* out, const __grid_constant__ Scoring scoring) {
  constexpr WarpShape shape = warp_shapes[choice];
  extern __shared__ uint4 shared[];
  __shared__ WindowSum of_reference;
  const Memory memory(cut, shared);
  const int h = frame.reference.height, w = frame.reference.width;
  const int warp = threadIdx.x / warp_size;
  // The warp's place; with two parts of k the second one leaves all shifts to the first.
  const int warp_y = shape.k_parts() > 1 ? 0 : cut.warps_x == 1 ? warp : warp / 2;
  const int warp_x = shape.k_parts() > 1 ? 0 : warp - warp_y * cut.warps_x;
  const FragmentLane lane(threadIdx.x % warp_size);
  const LaneShifts<shape> shifts(lane, warp_y * shape.rows(), warp_x * columns_per_warp,
                                 shape.k_parts() == 1 || warp == 0);
  const ChunkCells window_cells(most_chunks(w + cut.columns() - 1)), reference_cells(most_chunks(w));

  const std::int64_t end = tasks.count() * (blockIdx.x + 1) / gridDim.x;
  std::int64_t task = tasks.count() * blockIdx.x / gridDim.x;
  Cursor cursor(tasks, task);
  Share share(frame, cut, tasks, cursor);
  share.stage_window(frame, cut, window_cells, memory.window);
  share.stage_reference(frame, cut, reference_cells, false, memory.reference);
  const bool loses_reference = !cut.keeps_window && (output != Result::sums || shape.k_parts() > 1);
  const WindowSums window_sums(cut, memory, w);
  WindowSumPair first_sums{};
  bool new_window = true;
  while (true) {
    wait_for_copies();
    __syncthreads();
    clear_before_reference(h, share.reference_byte, cut.k.reference_stride, memory.reference);
    if constexpr (output != Result::sums) {
      if (new_window) clear_columns(cut.sums, memory.columns);
      if (threadIdx.x == 0) of_reference = {0, 0};
    }
    __syncthreads();

    LaneValues<shape, Word> sums;
    multiply_shifts<shape>(frame, cut, share, memory, lane, shifts, sums);
    if constexpr (output != Result::sums) {
      sum_reference(memory.reference + cut.k.reference_stride + reference_pad / sizeof(Word),
                    cut.k.reference_stride, h, most_chunks(w), &of_reference);
    }
    if constexpr (shape.k_parts() == 2) add_parts<shape>(memory.reference, sums);
    if constexpr (output != Result::sums) {
      if (loses_reference) __syncthreads();  // the changes take the place of the reference
      if (new_window) sum_windows<shape>(cut, share, h, w, memory);
    }
    __syncthreads();

    // The next task's copies run while this one is scored.
    const Share done = share;
    const bool was_new = new_window;
    const bool more = ++task < end;
    if (more) {
      new_window = cursor.advance(tasks);
      const Share next(frame, cut, tasks, cursor);
      share.pair = next.pair;
      if (new_window) {
        share = next;
        share.stage_window(frame, cut, window_cells, memory.window);
      }
      if (!loses_reference) share.stage_reference(frame, cut, reference_cells, true, memory.reference);
    }
    if constexpr (output == Result::sums) {
      if (shifts.owned) store_surface(frame, done, shifts, out, [&](int i) { return sums[i]; });
    } else {
      LaneValues<shape, float> scores;
      if (was_new)
        first_sums = window_sums.at(shifts.first_row, shifts.parity, window_sums.pair_column(shifts.column));
      if (shifts.owned)
        visit_measure(scoring.measure, [&]<Measure measure> {
          score_shifts<measure, shape>(Reference<measure>(h * w, of_reference), done, shifts, window_sums,
                                       first_sums, sums, scores);
        });
      if (output == Result::scores && shifts.owned)
        store_surface(frame, done, shifts, scoring.scores, [&](int i) {
          const float score = fmaxf(scores[i], undefined);
          return scoring.kind == ScoreKind::value ? value_of(score, scoring.measure) : score;
        });
      if constexpr (output == Result::peaks) find_peak<shape>(frame, done, scoring, shifts, scores);
    }
    if (!more) break;
    if (loses_reference) {
      __syncthreads();  // what took its place has been read
      share.stage_reference(frame, cut, reference_cells, false, memory.reference);
    }
  }
}

/// Blocks that the current device runs at once.
template <typename Kernel>
std::int64_t resident_blocks(Kernel kernel, int threads, int shared_bytes, const NccJob& job) {
  int device = 0, multiprocessors = 0, blocks = 0;
  const std::string what = describe("cuda-u8-tensor", job);
  check(cudaGetDevice(&device), what);
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), what);
  allow_shared_memory(kernel, shared_bytes, what);
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes), what);
  return std::int64_t{multiprocessors} * std::max(blocks, 1);
}

template <std::size_t choice, Result output>
void launch_shape(const NccJob& job, const Cut& cut, Word* out, const Scoring& scoring, StreamHandle stream) {
  const Tasks tasks(job, cut);
  const auto kernel = u8_tensor<choice, output>;
  const std::int64_t blocks =
      std::min(tasks.count(), resident_blocks(kernel, cut.threads(), cut.shared_bytes(), job));
  kernel<<<static_cast<unsigned>(blocks), cut.threads(), cut.shared_bytes(), stream>>>(make_frame(job), cut,
                                                                                       tasks, out, scoring);
}

/// Launches the cut's shape: what is instantiated is warp_shapes itself.
template <Result output, std::size_t... i>
void launch_choice(const NccJob& job, Word* out, const Scoring& scoring, StreamHandle stream,
                   std::index_sequence<i...>) {
  const Cut cut = choose_cut(job, output);
  ((cut.warp == warp_shapes[i] ? launch_shape<i, output>(job, cut, out, scoring, stream) : void()), ...);
}
template <Result output>
void launch(const NccJob& job, Word* out, const Scoring& scoring, StreamHandle stream) {
  launch_choice<output>(job, out, scoring, stream, std::make_index_sequence<std::size(warp_shapes)>{});
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
  const Cut cut = choose_cut(job, Result::scores);
  const bool one_block_per_pair = cut.columns() >= job.shifts.nx() && cut.rows() >= job.shifts.ny();
  const bool small = job.reference.height * job.reference.width <= 257 * 257;  // 32 bits hold the squares
  return small && fits(job, cut) && (!peaks || one_block_per_pair);
}

void launch_u8_tensor(const NccJob& job, void* out, StreamHandle stream) {
  launch<Result::sums>(job, static_cast<Word*>(out), {}, stream);
}

void launch_u8_tensor_scores(const NccJob& job, Measure measure, ScoreKind kind, float* scores,
                             StreamHandle stream) {
  launch<Result::scores>(job, nullptr, {measure, kind, scores, nullptr}, stream);
  check_launch(describe("cuda-u8-tensor scores", job));
}

void launch_u8_tensor_peaks(const NccJob& job, Measure measure, Peak* peaks, StreamHandle stream) {
  launch<Result::peaks>(job, nullptr, {measure, ScoreKind::score, nullptr, peaks}, stream);
  check_launch(describe("cuda-u8-tensor peaks", job));
}

}  // namespace dic::kernels
