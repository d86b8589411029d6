#include <algorithm>
#include <array>

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

/// What a warp computes: `tiles` products one above the other, and with a tail one more that is 4 columns by
/// 32 rows, for the one column that 2 R + 1 shifts are often too wide.
struct WarpShape {
  int tiles = 0;
  bool tail = false;
  bool operator==(const WarpShape&) const = default;
};
/// Those that are compiled.
constexpr std::array warp_shapes{WarpShape{1, false}, WarpShape{2, false}, WarpShape{3, false},
                                 WarpShape{4, false}, WarpShape{5, false}, WarpShape{5, true},
                                 WarpShape{6, false}, WarpShape{8, false}, WarpShape{9, false}};

/// How a block cuts its work: warps_x x warps_y warps over one stretch of shared memory.
struct Cut {
  WarpShape warp;
  int warps_x = 0, warps_y = 0;  ///< warps_x is 1 or 2, with a tail 1
  ProductLayout k;
  int window_rows = 0;
  WindowSumsLayout sums = {};  ///< empty where no scores are computed

  __host__ __device__ int columns() const { return warps_x * columns_per_warp + (warp.tail ? 1 : 0); }
  __host__ __device__ int rows() const { return warps_y * warp.tiles * rows_per_tile; }
  /// The scores of the block take the window's place.
  __host__ __device__ int window_words() const {
    return round_up(max(window_rows * k.window_stride, rows() * columns()), 4);
  }
  /// Rows -1 .. k_rows - 1, and 6 more that a step ahead loads without using them. The changes of the
  /// window's sums take the reference's place.
  __host__ __device__ int reference_words() const {
    return max((k.rows + 7) * k.reference_stride, 2 * sums.changes());
  }
  int shared_bytes() const {
    return static_cast<int>(sizeof(Word)) * (window_words() + reference_words() + 2 * sums.columns());
  }
  int threads() const { return warps_x * warps_y * warp_size; }

 private:
  __host__ __device__ static int max(int a, int b) { return a > b ? a : b; }
};

/// Rows of whole chunks that begin 12 or 20 banks apart: two neighbouring rows of 8 words never meet in one
/// bank.
int spread(int words) {
  int stride = round_up(words, 4);
  while (stride % 32 != 12 && stride % 32 != 20) stride += 4;
  return stride;
}

Cut make_cut(const NccJob& job, Result output, WarpShape warp, int warps_x, int warps_y) {
  const int h = job.reference.height, w = job.reference.width;
  Cut cut;
  cut.warp = warp, cut.warps_x = warps_x, cut.warps_y = warps_y;
  cut.k.rows = round_up(h + 1, 4);
  cut.k.words = round_up(w + 3 + 3, 8) / 4;
  cut.window_rows = cut.k.rows + cut.rows() + 2;
  // The first word of a warp's last step, and what the copy of whole chunks writes.
  cut.k.window_stride =
      spread(std::max(cut.k.words + cut.columns() / 4 + 2, round_up(15 + cut.columns() + w - 1, 16) / 4));
  cut.k.reference_stride = round_up(reference_pad / 4 + 4 + cut.k.words, 4);
  if (output != Result::sums)
    cut.sums = WindowSumsLayout(std::min(cut.columns(), job.shifts.nx()), cut.rows(), w);
  return cut;
}

constexpr int most_tiles = warp_shapes.back().tiles;

/// The lowest shape that covers `tiles` with warps_y warps.
WarpShape shape_for(int tiles, int warps_y) {
  return *std::ranges::find_if(
      warp_shapes, [&](const WarpShape& shape) { return !shape.tail && shape.tiles * warps_y >= tiles; });
}

/// The cut for a job; shared_bytes() tells whether it fits.
Cut choose_cut(const NccJob& job, Result output) {
  const int tiles = (job.shifts.ny() + rows_per_tile - 1) / rows_per_tile;
  constexpr WarpShape with_tail{5, true};
  if (job.shifts.nx() == columns_per_warp + 1 && tiles <= 2 * with_tail.tiles)
    return make_cut(job, output, with_tail, 1, tiles <= with_tail.tiles ? 1 : 2);
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

/// A block's share of a job: the shifts from (y, x) of the rectangle on.
struct Share {
  std::int64_t pair;
  int x, y, shifts_x, shifts_y;

  __device__ Share(const Frame& frame, const Cut& cut, std::int64_t task, int tiles_x, int tiles_y)
      : pair(task), x(0), y(0) {
    if (const int parts = tiles_x * tiles_y; parts > 1) {
      pair = task / parts;
      const int part = static_cast<int>(task - pair * parts);
      x = part % tiles_x * cut.columns();
      y = part / tiles_x * cut.rows();
    }
    shifts_x = min(cut.columns(), frame.nx - x);
    shifts_y = min(cut.rows(), frame.ny - y);
  }
};

/// What scoring needs to know of a job.
struct Scoring {
  Measure measure;
  ScoreKind kind;
  float* scores;
  Peak* peaks;
};

/// A reference of n elements as the scores of its shifts need it.
template <Measure measure>
struct Reference {
  int n;
  ReferenceSums sums;
  float scale;  ///< inverse root of its variation; 0 = no contrast

  __device__ Reference(int elements, const ReferenceSums& of_elements) : n(elements), sums(of_elements) {
    const auto squares = static_cast<std::int64_t>(sums.squares);
    const std::int64_t variation =
        measure == Measure::zncc ? multiply_add_wide(-sums.sum, sums.sum, n * squares) : squares;
    scale = variation > 0 ? inverse_root(static_cast<float>(variation)) : 0.0f;
  }
  __device__ bool can_score() const { return measure == Measure::ssd || scale > 0; }

  __device__ float score(Word product, const WindowSum& window) const {
    if constexpr (measure == Measure::zncc) {
      // n sum(a b) - sum(a) sum(b), the window about 128.
      const int product_about_128 = static_cast<int>(product) - 128 * sums.sum;
      const std::int64_t covariance =
          multiply_add_wide(-sums.sum, window.sum, multiply_add_wide(n, product_about_128, 0));
      const std::int64_t variation =
          multiply_add_wide(-window.sum, window.sum, multiply_add_wide(n, window.squares, 0));
      return normalized(static_cast<float>(covariance), scale, static_cast<float>(variation));
    } else {
      const std::int64_t squares = window.squares + 256ll * window.sum + 16384ll * n;
      if constexpr (measure == Measure::ncc)
        return normalized(static_cast<float>(product), scale, static_cast<float>(squares));
      return -static_cast<float>(sums.squares + squares - 2ll * product);
    }
  }
};

/// The rows first .. end - 1 of shifts that a lane scores in its column; of all rows, first_defined ..
/// first_defined + defined - 1 are defined.
struct ColumnRows {
  int first, end, first_defined, defined;
};
/// Turns the lane's column of the tile, which holds sums, into scores, and finds the best of them; its index
/// is its row. `sum` belongs to the first row.
template <Measure measure>
__device__ Best score_column(const Reference<measure>& reference, const ColumnRows& rows, WindowSum sum,
                             const WindowSum* change, int change_stride, float* tile, int tile_stride) {
  Best best = Best::none();
#pragma unroll 2
  for (int row = rows.first; row < rows.end; ++row) {
    const float score = reference.score(__float_as_uint(*tile), sum);
    const bool defined =
        static_cast<unsigned>(row - rows.first_defined) < static_cast<unsigned>(rows.defined);
    const float result = defined ? score : undefined;
    *tile = result;
    if (result > best.score) best = {result, row};
    sum.add(*change);
    change += change_stride;
    tile += tile_stride;
  }
  return best;
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

/// Writes a block's scores to the surfaces of the job.
__device__ void store_scores(const Frame& frame, const Share& share, const Scoring& scoring, const Cut& cut,
                             const float* tile) {
  for (int row = threadIdx.x / warp_size; row < share.shifts_y; row += blockDim.x / warp_size) {
    float* out = scoring.scores + ((share.pair * frame.ny + share.y + row) * frame.nx + share.x);
    for (int column = threadIdx.x % warp_size; column < share.shifts_x; column += warp_size) {
      const float value = tile[row * cut.columns() + column];
      out[column] = scoring.kind == ScoreKind::value ? value_of(value, scoring.measure) : value;
    }
  }
}

/// Finds the peak of the block's scores, which are all of the pair. Every thread brings the best of its
/// `column`, and of what it did of the tail: only the columns close to the peak are searched again for the
/// second one.
__device__ void find_peak(const Frame& frame, const Share& share, const Scoring& scoring, const Cut& cut,
                          int column, const Best& of_column, const Best& of_tail, const float* tile) {
  Best best = of_column;
  best.take(of_tail);
  best = best_of_block(best);
  const int best_row = best.index / frame.nx, best_column = best.index % frame.nx;
  Best second = abs(column - best_column) > 2 ? of_column : Best::none();
  if (abs(columns_per_warp - best_column) > 2) second.take(of_tail);
  for (int i = threadIdx.x; i < 5 * frame.ny; i += blockDim.x) {
    const int row = i / 5, near = best_column - 2 + i % 5;
    if (near >= 0 && near < frame.nx && abs(row - best_row) > 2)
      second.take({tile[row * cut.columns() + near], row * frame.nx + near});
  }
  second = best_of_block(second);
  if (threadIdx.x < warp_size)
    store_peak(frame, scoring.measure, tile, cut.columns(), best, second, scoring.peaks + share.pair);
}

/// The shifts of a share at which the reference lies inside the window: a rectangle.
struct DefinedShifts {
  int x0, x1, y0, y1;

  __device__ DefinedShifts(const Matrix<u8>& window, int x, int y, int width, int height)
      : x0(window.x0 - x), x1(window.x1 - width - x), y0(max(window.y0 - y, 0)), y1(window.y1 - height - y) {}
  __device__ int rows(int column) const { return column >= x0 && column <= x1 ? max(y1 - y0 + 1, 0) : 0; }
};

template <int tiles, bool tail, Result output>
__global__ void __launch_bounds__(most_warps* warp_size, 4)
    u8_tensor(const __grid_constant__ Frame frame, const __grid_constant__ Cut cut, std::int64_t tasks,
              int tiles_x, int tiles_y, Word* out, const __grid_constant__ Scoring scoring) {
  extern __shared__ uint4 shared[];
  Word* const window_words = reinterpret_cast<Word*>(shared);
  Word* const reference_words = window_words + cut.window_words();
  auto* const changes = reinterpret_cast<WindowSum*>(reference_words);
  auto* const columns = reinterpret_cast<WindowSum*>(reference_words + cut.reference_words());

  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const auto [group, word, parity] = FragmentLane(lane);
  const int warp_y = cut.warps_x == 1 ? warp : warp / 2, warp_x = warp - warp_y * cut.warps_x;
  const int first_column = warp_x * columns_per_warp;
  const int first_row = warp_y * tiles * rows_per_tile, end_row = first_row + tiles * rows_per_tile;
  const int h = frame.reference.height, w = frame.reference.width;

  for_each_task(tasks, 1, 0, [&](std::int64_t task) {
    const Share share(frame, cut, task, tiles_x, tiles_y);
    __syncthreads();  // the last task's readers are done
    const std::int64_t window_index = frame.window_of(share.pair);
    const auto window = load_matrix<u8>(frame.search, window_index);
    const int window_y = frame.dy_min + share.y, window_x = frame.dx_min + share.x;
    const int window_byte =
        stage_window(frame.search, window, window_index, window_y, window_x, h + share.shifts_y - 1,
                     w + share.shifts_x - 1, cut.k.window_stride, window_words);
    const std::int64_t reference_index = frame.reference_of(share.pair);
    const int reference_byte =
        stage_reference(frame.reference, load_matrix<u8>(frame.reference, reference_index), reference_index,
                        cut.k.rows, cut.k.reference_stride, reference_words);
    if constexpr (output != Result::sums) clear_columns(cut.sums, columns);
    wait_for_copies();
    __syncthreads();
    clear_before_reference(h, reference_byte, cut.k.reference_stride, reference_words);
    __syncthreads();

    Word sums[tiles + tail][4] = {};
    const Word* const warp_words =
        window_words + (first_row + parity) * cut.k.window_stride + (first_column + window_byte) / 4 + word;
    const int reference_at = reference_pad + reference_byte - group % 4 - window_byte % 4;
    multiply_window<tiles, tail>(
        cut.k, warp_words + group, warp_words + 2 * group * cut.k.window_stride + columns_per_warp / 4,
        reference_words + (1 + parity - group / 4) * cut.k.reference_stride + word + reference_at / 4,
        8 * (reference_at % 4), sums);

    const auto visit_sums = [&](auto&& take) {
#pragma unroll
      for (int i = 0; i < 4 * tiles; ++i)
        take(first_row + i / 4 * rows_per_tile + 2 * (i / 2 % 2) + parity,
             first_column + 4 * group + 2 * word + i % 2, sums[i / 4][i % 4]);
      if constexpr (tail)
#pragma unroll
        for (int i = 0; i < 4; i += 2)  // B = 1 lies beyond
          if (const int row = first_row + 8 * i + 2 * group + parity; word == 0 && row < end_row)
            take(row, columns_per_warp, sums[tiles][i]);
    };
    if constexpr (output == Result::sums) {
      visit_sums([&](int row, int column, Word sum) {
        if (column < share.shifts_x && row < share.shifts_y)
          out[(share.pair * frame.ny + share.y + row) * frame.nx + share.x + column] = sum;
      });
    } else {
      const Word* const aligned = window_words + window_byte / 4;
      sum_columns(cut.sums, aligned, cut.k.window_stride, h, columns);
      const ReferenceSums of_reference = sum_reference(reinterpret_cast<const uint4*>(reference_words),
                                                       (cut.k.rows + 1) * cut.k.reference_stride / 4);
      __syncthreads();  // the changes take the place of the reference
      sum_changes(cut.sums, aligned, cut.k.window_stride, h, w, share.shifts_y - 1, changes);
      __syncthreads();  // the tile takes the place of the window
      auto* const tile = reinterpret_cast<float*>(window_words);
      visit_sums(
          [&](int row, int column, Word sum) { tile[row * cut.columns() + column] = __uint_as_float(sum); });
      __syncthreads();
      const DefinedShifts defined(window, window_x, window_y, w, h);
      const int column = first_column + lane;
      Best of_column, of_tail = Best::none();
      visit_measure(scoring.measure, [&]<Measure measure> {
        const Reference<measure> reference(h * w, of_reference);
        const auto score = [&](int x, int row, int end) {
          const int c = min(x, share.shifts_x - 1) + window_byte % 4;
          const bool can = x < share.shifts_x && reference.can_score();
          Best best =
              score_column(reference, {row, min(end, share.shifts_y), defined.y0, can ? defined.rows(x) : 0},
                           sum_at(cut.sums, c, row, w, columns, changes), changes + row * cut.sums.stride + c,
                           cut.sums.stride, tile + row * cut.columns() + x, cut.columns());
          if (best.index >= 0) best.index = best.index * frame.nx + x;
          return best;
        };
        of_column = score(column, first_row, end_row);
        if constexpr (tail)  // a lane per row
          if (const int row = first_row + lane; row < min(end_row, share.shifts_y))
            of_tail = score(columns_per_warp, row, row + 1);
      });
      __syncthreads();
      if constexpr (output == Result::scores)
        store_scores(frame, share, scoring, cut, tile);
      else
        find_peak(frame, share, scoring, cut, column, of_column, of_tail, tile);
    }
  });
}

template <int tiles, bool tail, Result output>
void launch_shape(const NccJob& job, const Cut& cut, Word* out, const Scoring& scoring, StreamHandle stream) {
  const Frame frame = make_frame(job);
  const int tiles_x = (frame.nx + cut.columns() - 1) / cut.columns();
  const int tiles_y = (frame.ny + cut.rows() - 1) / cut.rows();
  const std::int64_t tasks = frame.pairs * tiles_x * tiles_y;
  const int bytes = cut.shared_bytes();
  const auto kernel = u8_tensor<tiles, tail, output>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        describe("cuda-u8-tensor", job));
  kernel<<<grid_size(tasks, 1), cut.threads(), bytes, stream>>>(frame, cut, tasks, tiles_x, tiles_y, out,
                                                                scoring);
}

/// Launches the cut's shape: what is instantiated is warp_shapes itself.
template <Result output, std::size_t... i>
void launch_choice(const NccJob& job, Word* out, const Scoring& scoring, StreamHandle stream,
                   std::index_sequence<i...>) {
  const Cut cut = choose_cut(job, output);
  ((cut.warp == warp_shapes[i]
        ? launch_shape<warp_shapes[i].tiles, warp_shapes[i].tail, output>(job, cut, out, scoring, stream)
        : void()),
   ...);
}
template <Result output>
void launch(const NccJob& job, Word* out, const Scoring& scoring, StreamHandle stream) {
  launch_choice<output>(job, out, scoring, stream, std::make_index_sequence<warp_shapes.size()>{});
}

bool fits(const NccJob& job, Result output) {
  return choose_cut(job, output).shared_bytes() <= most_shared_bytes;
}

}  // namespace

std::string refuses_u8_tensor(const NccJob& job) {
  if (job.sums != Surfaces::Type::u32) return "cuda-u8-tensor sums in 32 bits.";
  if (job.shifts.count() > 0 && !fits(job, Result::sums))
    return "cuda-u8-tensor does references up to about 255x255.";
  return {};
}

bool u8_tensor_scores_fit(const NccJob& job, bool peaks) {
  const Cut cut = choose_cut(job, Result::scores);
  const bool one_block_per_pair = cut.columns() >= job.shifts.nx() && cut.rows() >= job.shifts.ny();
  // Window sums about 128 are exact in 32 bits up to here.
  const bool small = job.reference.height * job.reference.width <= 65536;
  return small && cut.shared_bytes() <= most_shared_bytes && (!peaks || one_block_per_pair);
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
