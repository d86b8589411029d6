#include <array>

#include "ncc/scoring.cuh"
#include "ncc/variants.hpp"

// Exact sums of u8 products on tensor cores (mma m16n8k32, u8 x u8 -> s32; sums wrap modulo 2^32 as they
// should).
//
// Write a shift as dx = 4 A + B, dy = 2 a + b with 0 <= B < 4, 0 <= b < 2, and move (b, B) to the reference:
//
//     c[dy, dx] = sum over p, q of ref[p - b, q - B] * window[p + 2 a, q + 4 A]
//
// That is a matrix product over k = (p, q): its left matrix has the rows m = (A, a) and holds words of the
// window that are never shifted by less than a word; its right matrix has the columns n = (b, B) and holds
// the small reference, shifted by bytes with one funnel shift. One product computes 8 A x 4 B = 32 columns by
// 2 a x 2 b = 4 rows of shifts. Elements beyond the reference are zero in shared memory; whatever the window
// holds there does not count.
//
// A step takes k = 4 rows (p) x 2 words (q). Then a lane needs the window at rows p, p + 2, p + 4 for one
// product, at p + 4, p + 6, p + 8 for the product 4 shifts further down, and the next step begins at p + 4: a
// column of 2 tiles + 1 words stays in registers, and a step loads 2 of them.
//
// Scores need the sums of the window under the reference. They come from the same shared memory: first along
// the rows (a thread slides along a row), then down the columns (a lane slides down its column of shifts and
// scores them).
namespace dic::kernels {
namespace {

using u8 = std::uint8_t;
using Word = std::uint32_t;

constexpr int columns_per_warp = 32;  ///< shifts along x
constexpr int rows_per_tile = 4;      ///< shifts along y of one product
constexpr int most_warps = 4;
constexpr int most_shared_bytes = 160 * 1024;

enum class Result {
  sums,    ///< u32
  scores,  ///< f32: one ScoreKind per shift
  peaks    ///< one Peak per pair; a block covers all shifts
};

/// How a block cuts its work: warps_x x warps_y warps, each `tiles` products high, over one stretch of shared
/// memory.
struct Cut {
  int tiles = 0, warps_x = 0, warps_y = 0;
  int k_rows = 0, k_words = 0;  ///< extent of (p, q), rounded up to whole steps
  int window_rows = 0, window_stride = 0, reference_stride = 0;
  int sum_rows = 0;  ///< rows of the window under any shift; 0 where no scores are computed

  __host__ __device__ int columns() const { return warps_x * columns_per_warp; }
  __host__ __device__ int rows() const { return warps_y * tiles * rows_per_tile; }
  __host__ __device__ int window_words() const { return window_rows * window_stride; }
  __host__ __device__ int reference_words() const { return (k_rows + 1) * reference_stride; }
  /// One more than needed, so that neither a row nor a column of sums meets one bank only.
  __host__ __device__ int sum_stride() const { return columns() + 1; }
  int shared_bytes() const {
    const int sum_words = 2 * sum_rows * sum_stride() + (sum_rows > 0 ? rows() * columns() : 0);
    return static_cast<int>(sizeof(Word)) * (window_words() + reference_words() + sum_words);
  }
  int threads() const { return warps_x * warps_y * warp_size; }
};

/// Rows (in words) that are an odd number of banks apart, and far enough that two of them never meet in one
/// bank.
int spread(int words) {
  int stride = words | 1;
  while (stride % 32 < 9 || stride % 32 > 23) stride += 2;
  return stride;
}

constexpr std::array tile_choices{1, 2, 3, 4, 5, 6, 8, 9};

Cut make_cut(const NccJob& job, Result output, int tiles, int warps_x, int warps_y) {
  Cut cut{tiles, warps_x, warps_y};
  cut.k_rows = (job.reference.height + 1 + 3) / 4 * 4;
  cut.k_words = (job.reference.width + 3 + 7) / 8 * 2;
  cut.window_rows = cut.k_rows + cut.rows() + 4;
  cut.window_stride = spread(cut.k_words + 8 * warps_x);
  cut.reference_stride = (cut.k_words + 1) | 1;
  if (output != Result::sums) cut.sum_rows = job.reference.height + cut.rows() - 1;
  return cut;
}

/// The cut for a job; shared_bytes() tells whether it fits.
Cut choose_cut(const NccJob& job, Result output) {
  const int tiles = (job.shifts.ny() + rows_per_tile - 1) / rows_per_tile;
  const int most = tile_choices.back();
  const int warps_y = tiles <= most ? 1 : 2;
  int per_warp = 8;
  if (tiles <= 2 * most)
    per_warp = *std::lower_bound(tile_choices.begin(), tile_choices.end(), (tiles + warps_y - 1) / warps_y);
  const int warps_x = job.shifts.nx() <= columns_per_warp ? 1 : 2;
  const Cut cut = make_cut(job, output, per_warp, warps_x, warps_y);
  if (cut.shared_bytes() <= most_shared_bytes) return cut;
  return make_cut(job, output, std::min(per_warp, 8), 1, 1);
}

/// Copies rows x words of a matrix, from (y, x) on, to shared memory; the threads of the block share the
/// work. The first element of a word is its lowest byte; elements that do not exist are zero. Global memory
/// is read in aligned words that hold at least one existing element.
__device__ void stage(const Matrix<u8>& matrix, int y, int x, int rows, int words, int stride, Word* shared) {
  int lanes = 1;  // threads side by side on one row: a power of two
  while (lanes < words && lanes < warp_size) lanes *= 2;
  const int rows_at_once = blockDim.x / lanes;
  for (int word = threadIdx.x % lanes; word < words; word += lanes) {
    const int column = x + 4 * word;
    const int first = min(max(matrix.x0 - column, 0), 4), last = min(max(matrix.x1 - column, 0), 4) - 1;
    const bool some_exist = first <= last;
    const Word mask = some_exist ? 0xffffffffu << (8 * first) & 0xffffffffu >> (8 * (3 - last)) : 0;
#pragma unroll 8
    for (int row = threadIdx.x / lanes; row < rows; row += rows_at_once) {
      Word value = 0;
      if (some_exist && y + row >= matrix.y0 && y + row < matrix.y1) {
        const auto address = reinterpret_cast<std::uintptr_t>(matrix.row(y + row) + column);
        const int offset = static_cast<int>(address & 3);
        const auto* aligned = reinterpret_cast<const Word*>(address - offset);
        const Word low = __ldg(aligned + (offset + first) / 4), high = __ldg(aligned + (offset + last) / 4);
        value = __funnelshift_r(low, high, 8 * offset) & mask;
      }
      shared[row * stride + word] = value;
    }
  }
}

__device__ void multiply(Word (&sums)[4], Word a0, Word a1, Word a2, Word a3, Word b0, Word b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// The k loop of one warp. `window` and `reference` point at this lane's first words (see the kernel).
template <int tiles>
__device__ void multiply_window(const Cut& cut, const Word* window, const Word* reference, int byte_shift,
                                Word (&sums)[tiles][4]) {
  for (int q = 0; q < cut.k_words; q += 2, window += 2, reference += 2) {
    const Word* below = window;
    Word column[2 * tiles + 1];
#pragma unroll
    for (int i = 0; i <= 2 * tiles; ++i, below += 2 * cut.window_stride) column[i] = *below;
    const Word* patch = reference;
#pragma unroll 2
    for (int p = 0; p < cut.k_rows; p += 4) {
      const Word b0 = __funnelshift_rc(patch[0], patch[1], byte_shift);
      patch += 2 * cut.reference_stride;
      const Word b1 = __funnelshift_rc(patch[0], patch[1], byte_shift);
      patch += 2 * cut.reference_stride;
#pragma unroll
      for (int t = 0; t < tiles; ++t)
        multiply(sums[t], column[2 * t], column[2 * t + 1], column[2 * t + 1], column[2 * t + 2], b0, b1);
#pragma unroll
      for (int i = 0; i + 2 <= 2 * tiles; ++i) column[i] = column[i + 2];
      column[2 * tiles - 1] = *below;
      below += 2 * cut.window_stride;
      column[2 * tiles] = *below;
      below += 2 * cut.window_stride;
    }
  }
}

/// Sum and sum of squares of up to 255 x 255 elements: exact in 32 bits.
struct WindowSums {
  Word sum, squares;

  __device__ void add(Word element) {
    sum += element;
    squares += element * element;
  }
  __device__ void remove(Word element) {
    sum -= element;
    squares -= element * element;
  }
  __device__ void add(const WindowSums& other) {
    sum += other.sum;
    squares += other.squares;
  }
  __device__ void remove(const WindowSums& other) {
    sum -= other.sum;
    squares -= other.squares;
  }
  __device__ Moments<u8> moments(std::int64_t n) const {
    return {sum, squares, centred<u8>(n, squares, sum, sum)};
  }
};

/// sums[row][dx] = over elements dx .. dx + width - 1 of the row. A thread slides along each of its rows.
__device__ void sum_rows(const Cut& cut, const Word* window, int rows, int shifts_x, int width,
                         WindowSums* sums) {
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    const auto* elements = reinterpret_cast<const u8*>(window + row * cut.window_stride);
    WindowSums sum{};
    for (int x = 0; x < width; ++x) sum.add(elements[x]);
    WindowSums* out = sums + row * cut.sum_stride();
    for (int dx = 0; dx < shifts_x; ++dx) {
      out[dx] = sum;
      sum.add(elements[dx + width]);
      sum.remove(elements[dx]);
    }
  }
}

/// A block's share of a job: the shifts from (y, x) of the rectangle on.
struct Share {
  std::int64_t pair;
  int x, y, shifts_x, shifts_y;
};

/// What scoring needs to know of a job.
struct Scoring {
  Measure measure;
  ScoreKind kind;
  const Moments<u8>* references;
  float* scores;
  Peak* peaks;
};

/// Turns tile[row][column], which holds sums, into scores. Lane l of a warp slides down column l of its own
/// shifts.
__device__ void score_columns(const Frame& frame, const Share& share, const Scoring& scoring, const Cut& cut,
                              const Matrix<u8>& window, const WindowSums* row_sums, int column, int first_row,
                              int rows, Word* tile) {
  const int h = frame.reference.height, w = frame.reference.width;
  const std::int64_t n = h * w;
  const Moments<u8> reference = scoring.references[frame.reference_of(share.pair)];
  const int x = frame.dx_min + share.x + column;
  const bool inside = x >= window.x0 && x + w <= window.x1;
  const WindowSums* below = row_sums + first_row * cut.sum_stride() + column;
  WindowSums under{};
  for (int row = 0; row < h - 1; ++row) under.add(below[row * cut.sum_stride()]);
  for (int row = first_row; row < min(first_row + rows, share.shifts_y); ++row, below += cut.sum_stride()) {
    const int y = frame.dy_min + share.y + row;
    under.add(below[(h - 1) * cut.sum_stride()]);
    Word* const entry = tile + row * cut.columns() + column;
    const bool defined = inside && y >= window.y0 && y + h <= window.y1;
    const float result =
        defined ? score<u8>(scoring.measure, n, *entry, reference, under.moments(n)) : undefined;
    *entry = __float_as_uint(result);
    under.remove(*below);
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

/// Finds the peak of the block's scores, which are all of the pair.
__device__ void store_peak(const Frame& frame, const Share& share, const Scoring& scoring, const Cut& cut,
                           const float* tile) {
  const auto visit = [&](auto&& take) {
    for (int row = threadIdx.x / warp_size; row < frame.ny; row += blockDim.x / warp_size)
      for (int column = threadIdx.x % warp_size; column < frame.nx; column += warp_size)
        take(row, column, tile[row * cut.columns() + column]);
  };
  Best best = Best::none();
  visit([&](int row, int column, float value) { best.take({value, row * frame.nx + column}); });
  best = best_of_block(best);
  const int best_row = best.index / frame.nx, best_column = best.index % frame.nx;
  Best second = Best::none();
  visit([&](int row, int column, float value) {
    if (abs(row - best_row) > 2 || abs(column - best_column) > 2)
      second.take({value, row * frame.nx + column});
  });
  second = best_of_block(second);
  if (threadIdx.x == 0)
    scoring.peaks[share.pair] = make_peak(frame, scoring.measure, tile, cut.columns(), best, second);
}

template <int tiles, Result output>
__global__ void __launch_bounds__(most_warps* warp_size, 4)
    u8_tensor(const __grid_constant__ Frame frame, const __grid_constant__ Cut cut, std::int64_t tasks,
              int tiles_x, int tiles_y, Word* out, const __grid_constant__ Scoring scoring) {
  extern __shared__ Word shared[];
  Word* const window_words = shared;
  Word* const reference_words = window_words + cut.window_words();
  auto* const row_sums = reinterpret_cast<WindowSums*>(reference_words + cut.reference_words());
  Word* const tile = reinterpret_cast<Word*>(row_sums + cut.sum_rows * cut.sum_stride());

  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  // Fragment coordinates of the lane, as the instruction defines them: A (and the column n) = group, k word =
  // member.
  const int group = lane / 4, member = lane % 4;
  const int word = member % 2, parity = member / 2;
  const int first_column = warp % cut.warps_x * columns_per_warp;
  const int first_row = warp / cut.warps_x * tiles * rows_per_tile;
  const int b = group / 4, byte_shift = 32 - 8 * (group % 4);

  for_each_task(tasks, 1, 0, [&](std::int64_t task) {
    const int x = static_cast<int>(task % tiles_x) * cut.columns();
    const int y = static_cast<int>(task / tiles_x % tiles_y) * cut.rows();
    const Share share{task / tiles_x / tiles_y, x, y, min(cut.columns(), frame.nx - x),
                      min(cut.rows(), frame.ny - y)};
    const auto window = load_matrix<u8>(frame.search, frame.window_of(share.pair));
    const auto reference = load_matrix<u8>(frame.reference, frame.reference_of(share.pair));
    const int h = frame.reference.height, w = frame.reference.width;
    __syncthreads();  // the last task's readers are done
    stage(window, frame.dy_min + y, frame.dx_min + x, h + share.shifts_y - 1, (w + share.shifts_x + 2) / 4,
          cut.window_stride, window_words);
    // Row 0 is reference row -1, word 0 the four columns left of it.
    stage(reference, -1, -4, cut.k_rows + 1, cut.k_words + 1, cut.reference_stride, reference_words);
    __syncthreads();

    Word sums[tiles][4] = {};
    multiply_window<tiles>(
        cut, window_words + (first_row + parity) * cut.window_stride + first_column / 4 + word + group,
        reference_words + (1 + parity - b) * cut.reference_stride + word, byte_shift, sums);

#pragma unroll
    for (int t = 0; t < tiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = first_column + 4 * group + 2 * word + i % 2;
        const int row = first_row + rows_per_tile * t + 2 * (i / 2) + parity;
        if constexpr (output != Result::sums)
          tile[row * cut.columns() + column] = sums[t][i];
        else if (column < share.shifts_x && row < share.shifts_y)
          out[(share.pair * frame.ny + y + row) * frame.nx + x + column] = sums[t][i];
      }
    }
    if constexpr (output != Result::sums) {
      sum_rows(cut, window_words, h + share.shifts_y - 1, share.shifts_x, w, row_sums);
      __syncthreads();
      score_columns(frame, share, scoring, cut, window, row_sums, first_column + lane, first_row,
                    tiles * rows_per_tile, tile);
      __syncthreads();
      const auto* scores = reinterpret_cast<const float*>(tile);
      if constexpr (output == Result::scores)
        store_scores(frame, share, scoring, cut, scores);
      else
        store_peak(frame, share, scoring, cut, scores);
    }
  });
}

template <int tiles, Result output>
void launch_tiles(const NccJob& job, const Cut& cut, Word* out, const Scoring& scoring, StreamHandle stream) {
  const Frame frame = make_frame(job);
  const int tiles_x = (frame.nx + cut.columns() - 1) / cut.columns();
  const int tiles_y = (frame.ny + cut.rows() - 1) / cut.rows();
  const std::int64_t tasks = frame.pairs * tiles_x * tiles_y;
  const int bytes = cut.shared_bytes();
  const auto kernel = u8_tensor<tiles, output>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        describe("cuda-u8-tensor", job));
  kernel<<<grid_size(tasks, 1), cut.threads(), bytes, stream>>>(frame, cut, tasks, tiles_x, tiles_y, out,
                                                                scoring);
}

/// Calls launch_tiles with the cut's number of tiles: what is instantiated is tile_choices itself.
template <Result output, std::size_t... i>
void launch_choice(const NccJob& job, Word* out, const Scoring& scoring, StreamHandle stream,
                   std::index_sequence<i...>) {
  const Cut cut = choose_cut(job, output);
  ((cut.tiles == tile_choices[i] ? launch_tiles<tile_choices[i], output>(job, cut, out, scoring, stream)
                                 : void()),
   ...);
}
template <Result output>
void launch(const NccJob& job, Word* out, const Scoring& scoring, StreamHandle stream) {
  launch_choice<output>(job, out, scoring, stream, std::make_index_sequence<tile_choices.size()>{});
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
  return cut.shared_bytes() <= most_shared_bytes && (!peaks || one_block_per_pair);
}

void launch_u8_tensor(const NccJob& job, void* out, StreamHandle stream) {
  launch<Result::sums>(job, static_cast<Word*>(out), {}, stream);
}

void launch_u8_tensor_scores(const NccJob& job, Measure measure, ScoreKind kind, const void* moments,
                             float* scores, StreamHandle stream) {
  launch<Result::scores>(job, nullptr,
                         {measure, kind, static_cast<const Moments<u8>*>(moments), scores, nullptr}, stream);
  check_launch(describe("cuda-u8-tensor scores", job));
}

void launch_u8_tensor_peaks(const NccJob& job, Measure measure, const void* moments, Peak* peaks,
                            StreamHandle stream) {
  launch<Result::peaks>(job, nullptr,
                        {measure, ScoreKind::score, static_cast<const Moments<u8>*>(moments), nullptr, peaks},
                        stream);
  check_launch(describe("cuda-u8-tensor peaks", job));
}

}  // namespace dic::kernels
