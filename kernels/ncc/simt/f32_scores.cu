#include "common/shared_memory.hpp"
#include "ncc/scoring/find_peak.cuh"
#include "ncc/scoring/scoring.cuh"
#include "ncc/simt/register_tiles.cuh"
#include "ncc/variants.hpp"

// ZNCC of f32 images from f32 products. The means of reference and window are subtracted in shared memory, so
// that sums of products are as small as the covariance, which keeps their rounding errors small. Sums over
// the window are f64.
namespace dic::kernels {
namespace {

using F32 = Operands<float, float>;

/// Sum and sum of squares of elements.
struct RunSums {
  double sum = 0, squares = 0;

  __device__ void add(const RunSums& other) {
    sum += other.sum;
    squares += other.squares;
  }
  __device__ void remove(const RunSums& other) {
    sum -= other.sum;
    squares -= other.squares;
  }
  __device__ static RunSums of(float element) { return {element, double{element} * element}; }
};

/// Shared memory in addition to the operands: sums over runs of the window's rows, for as many columns of
/// shifts as fit (partial sums overwrite them later), and a sum and a scale for every shift.
struct ScoreLayout {
  int operand_words, rows, columns, terms_at, shifts;

  explicit ScoreLayout(const Tiling& tiling) {
    constexpr int most_run_bytes = 40 * 1024;
    operand_words = round_up(tiling.pair_words(), 4);
    rows = tiling.y.shifts_of_block() - 1 + tiling.y.reference;
    const int all = tiling.x.shifts_of_block();
    const int stripes = ShiftAxis::ceil(all * rows * static_cast<int>(sizeof(RunSums)), most_run_bytes);
    columns = ShiftAxis::ceil(all, stripes);
    const int run_words = rows * columns * static_cast<int>(sizeof(RunSums) / sizeof(float));
    terms_at = std::max(operand_words + run_words, tiling.shared_bytes() / 4);
    shifts = all * tiling.y.shifts_of_block();
  }
  int bytes() const { return 4 * (terms_at + 2 * shifts); }
};

/// Sums every value over the threads of a block; all threads get the sums.
template <int count>
__device__ void sum_over_block(double (&values)[count]) {
  __shared__ double by_warp[warp_size][count];
  __syncthreads();  // earlier sums have been read
#pragma unroll
  for (int i = 0; i < count; ++i) {
    values[i] = warp_sum(values[i]);
    if (threadIdx.x % warp_size == 0) by_warp[threadIdx.x / warp_size][i] = values[i];
  }
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / warp_size;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    values[i] = by_warp[0][i];
    for (int w = 1; w < warps; ++w) values[i] += by_warp[w][i];
  }
}

/// Matrix of rows x columns elements in shared memory.
struct StagedMatrix {
  float* first;
  int rows, columns;
  RowLayout layout;

  template <typename Body>
  __device__ void for_each(Body&& body) const {
    const Cells cells(columns);
    for (int row = cells.row(); row < rows; row += cells.rows_at_once())
      for (int column = cells.column(); column < columns; column += cells.columns_at_once())
        body(first[layout.at(row) + column]);
  }
  __device__ float sum_of_thread() const {
    float sum = 0;
    for_each([&](float element) { sum += element; });
    return sum;
  }
  __device__ RunSums subtract(float mean) const {
    RunSums thread_sums;
    for_each([&](float& element) {
      element -= mean;
      thread_sums.add(RunSums::of(element));
    });
    return thread_sums;
  }
};

/// Values of a reference and its window that scores need, both less their means.
struct CentredTerms {
  float sum, scale;  ///< sum of the reference; inverse root of its variation, 0 = no contrast
  double window_squares;

  /// Subtracts the means of reference and window in shared memory.
  __device__ CentredTerms(const StagedMatrix& reference, const StagedMatrix& window) {
    const int n = reference.rows * reference.columns;
    double means[]{reference.sum_of_thread(), window.sum_of_thread()};
    sum_over_block(means);
    const RunSums reference_sums = reference.subtract(static_cast<float>(means[0] / n));
    const RunSums window_sums =
        window.subtract(static_cast<float>(means[1] / (window.rows * window.columns)));
    double sums[]{reference_sums.sum, reference_sums.squares, window_sums.squares};
    sum_over_block(sums);
    sum = static_cast<float>(sums[0]);
    scale = scale_of(variation_of(n, sums[0], sums[1], sums[1]));
    window_squares = sums[2];
  }
  __device__ static float scale_of(double variation) {
    return variation > 0 ? inverse_root(static_cast<float>(variation)) : 0.0f;
  }
};

/// Sums over the window under the reference, for every shift of a block.
class WindowTerms {
 public:
  __device__ WindowTerms(const ScoreLayout& layout, double window_squares, float* shared)
      : layout_(layout),
        window_squares_(window_squares),
        runs_(reinterpret_cast<RunSums*>(shared + layout.operand_words)),
        sums_(shared + layout.terms_at),
        scales_(sums_ + layout.shifts) {}

  /// Computes the sums and scales. `first_row`: row of the window under the first row of the block's shifts.
  /// Shifts for which is_defined(x, y) is false get the score `undefined`.
  template <typename Defined>
  __device__ void fill(const TileBlock& block, const StagedMatrix& window, int first_row, int height,
                       int width, const Defined& is_defined) const {
    for (int x = 0; x < block.shifts_x; x += layout_.columns) {
      const int columns = min(layout_.columns, block.shifts_x - x);
      sum_runs(window, first_row, x, height + block.shifts_y - 1, columns, width);
      __syncthreads();
      sum_windows(block, x, columns, height, width, is_defined);
      __syncthreads();
    }
  }

  /// Computes the score n sum(a b) - sum(a) sum(b), scaled, which overwrites the scale.
  __device__ void score(int shift, int n, float product, const CentredTerms& centred) const {
    const float covariance = static_cast<float>(n) * product - centred.sum * sums_[shift];
    const float score = covariance * (centred.scale * scales_[shift]);
    const bool has_contrast = scales_[shift] > 0 && centred.scale > 0;
    scales_[shift] = has_contrast ? fminf(fmaxf(score, -1.0f), 1.0f) : undefined;
  }
  __device__ float* scores() const { return scales_; }

 private:
  /// Sums some neighbouring runs of a row per thread.
  __device__ void sum_runs(const StagedMatrix& window, int first_row, int x0, int rows, int columns,
                           int width) const {
    for_each_stretch(rows, columns, [&](int row, int begin, int end) {
      RunSums* const out = runs_ + row * layout_.columns;
      const int staged = first_row + row;
      const bool exists = staged >= 0 && staged < window.rows;
      const float* elements = window.first + window.layout.at(exists ? staged : 0) + x0;
      RunSums run;
      for (int i = begin; i < begin + width - 1; ++i) run.add(RunSums::of(elements[i]));
      for (int x = begin; x < end; ++x) {
        run.add(RunSums::of(elements[x + width - 1]));
        out[x] = run;
        run.remove(RunSums::of(elements[x]));
      }
    });
  }
  /// Sums over windows at some shifts, one below the other, per thread.
  template <typename Defined>
  __device__ void sum_windows(const TileBlock& block, int x0, int columns, int height, int width,
                              const Defined& is_defined) const {
    for_each_stretch(columns, block.shifts_y, [&](int x, int begin, int end) {
      const RunSums* run = runs_ + begin * layout_.columns + x;
      RunSums sum;
      for (int i = 0; i < height - 1; ++i) sum.add(run[i * layout_.columns]);
      for (int y = begin; y < end; ++y, run += layout_.columns) {
        sum.add(run[(height - 1) * layout_.columns]);
        const double variation = variation_of(height * width, sum.sum, sum.squares, window_squares_);
        const int shift = y * block.shifts_x + x0 + x;
        sums_[shift] = static_cast<float>(sum.sum);
        scales_[shift] = is_defined(x0 + x, y) ? CentredTerms::scale_of(variation) : undefined;
        sum.remove(*run);
      }
    });
  }

  /// Divides lines of `length` cells among the threads: body(line, begin, end).
  template <typename Body>
  __device__ static void for_each_stretch(int lines, int length, Body&& body) {
    const int threads = static_cast<int>(blockDim.x), per_line = max(threads / lines, 1);
    const int stretch = (length + per_line - 1) / per_line;
    for (int i = threadIdx.x; i < lines * per_line; i += threads) {
      const int begin = i / lines * stretch;
      if (begin < length) body(i % lines, begin, min(begin + stretch, length));
    }
  }

  const ScoreLayout& layout_;
  double window_squares_;
  RunSums* runs_;
  float *sums_, *scales_;
};

/// Output of a launch: the scores of all shifts, or the peaks of all pairs.
struct ScoreOutput {
  ScoreKind kind = ScoreKind::score;
  float* scores = nullptr;
  Peak* peaks = nullptr;
};

/// Writes a block's packed scores to the surfaces of the job.
__device__ void store_scores(const JobView& view, const TileBlock& block, const float* surface,
                             int tile_columns, int tile_rows, const ScoreOutput& out) {
  for (int i = threadIdx.x; i < block.shifts_x * block.shifts_y; i += blockDim.x) {
    const int y = i / block.shifts_x, x = i - y * block.shifts_x;
    const std::int64_t row = block.first * view.ny + block.tile_y * tile_rows + y;
    out.scores[row * view.nx + block.tile_x * tile_columns + x] =
        out.kind == ScoreKind::value ? value_of(surface[i], Criterion::zncc) : surface[i];
  }
}

/// Computes scores or peaks. With 96 registers, four blocks of 160 threads fit on a multiprocessor.
template <typename Tile>
__global__ void __maxnreg__(96)
    f32_scores(const __grid_constant__ JobView view, const __grid_constant__ Tiling tiling,
               const __grid_constant__ ScoreLayout layout, std::int64_t tasks,
               const __grid_constant__ ScoreOutput out) {
  extern __shared__ uint4 shared[];
  auto* const words = reinterpret_cast<float*>(shared);
  const int h = view.reference.height, w = view.reference.width;
  for_each_task(tasks, 1, 0, [&](std::int64_t task) {
    const TileBlock block(view, tiling, task);
    __syncthreads();  // the data of the last task has been read
    stage_band<float>(view, tiling, block, 0, 0, words);
    __syncthreads();
    const StagedMatrix staged_window{words, tiling.window_rows, tiling.window_columns, tiling.window};
    const StagedMatrix reference{words + tiling.window_words() + tiling.y.lead * tiling.reference_stride, h,
                                 w, RowLayout{tiling.reference_stride}};
    const CentredTerms centred(reference, staged_window);

    const int dx = view.dx_min + block.tile_x * Tile::columns, dy = view.dy_min + block.tile_y * Tile::rows;
    const auto window = load_patch<float>(view.search, view.window_of(block.first));
    const WindowTerms terms(layout, centred.window_squares, words);
    terms.fill(block, staged_window, dy - first_window_row(tiling, block, 0), h, w, [&](int x, int y) {
      return dx + x >= window.x0 && dx + x + w <= window.x1 && dy + y >= window.y0 && dy + y + h <= window.y1;
    });
    const PartialSums<F32, Tile> products(tiling, block, 0, 0, shared);
    products.for_each_row([&](int, int x, int y, const auto& sums) {
      if (y >= block.shifts_y) return;
#pragma unroll
      for (int i = 0; i < Tile::columns; ++i)
        if (x + i < block.shifts_x) terms.score(y * block.shifts_x + x + i, h * w, sums[i], centred);
    });
    __syncthreads();
    if (out.scores) store_scores(view, block, terms.scores(), Tile::columns, Tile::rows, out);
    if (out.peaks) find_peak(view, Criterion::zncc, terms.scores(), view.nx, out.peaks + block.first);
  });
}

/// Tiling that divides a pair's shifts among several blocks only if one does not suffice, so that all
/// launches of a job agree on whether peaks fit.
template <typename Tile>
Tiling scored_tiling(const NccJob& job) {
  constexpr int most_bytes = 96 * 1024;  // available on all devices except those of compute capability 7.5
  Tiling tiling = smallest_tiling<F32, Tile>(job);
  const auto too_large = [&] {
    set_sizes<F32, Tile>(tiling);
    return tiling.threads() > most_threads || ScoreLayout(tiling).bytes() > most_bytes;
  };
  while (too_large() && (use_more_blocks(tiling.y) || use_more_blocks(tiling.x))) {
  }
  return tiling;
}

Tiling tiling_for(const NccJob& job) {
  return visit_best_tile<F32>(job, [&]<typename Tile>(Tile) { return scored_tiling<Tile>(job); });
}

template <typename Tile>
void launch_tile(const NccJob& job, const ScoreOutput& out, StreamHandle stream) {
  const Tiling tiling = scored_tiling<Tile>(job);
  const ScoreLayout layout(tiling);
  const std::int64_t tasks = job.pairs * tiling.blocks_of_pair();
  const auto kernel = f32_scores<Tile>;
  allow_shared_memory(kernel, layout.bytes(), describe("cuda-f32-scores", job));
  kernel<<<grid_size(tasks, 1), tiling.threads(), layout.bytes(), stream>>>(make_job_view(job), tiling,
                                                                            layout, tasks, out);
  check_launch(describe("cuda-f32-scores", job));
}
void launch(const NccJob& job, const ScoreOutput& out, StreamHandle stream) {
  if (job.outputs() == 0) return;
  visit_best_tile<F32>(job, [&]<typename Tile>(Tile) { launch_tile<Tile>(job, out, stream); });
}

}  // namespace

std::string F32Scores::unsupported_reason(const NccJob& job) {
  if (std::max(job.reference.height, job.reference.width) > most_band)
    return "cuda-f32-scores does references up to 64x64.";
  return {};
}

bool F32Scores::fits(const NccJob& job, FusedOutput output) {
  return output == FusedOutput::scores || job.shifts.count() == 0 || tiling_for(job).blocks_of_pair() == 1;
}

int F32Scores::shared_bytes(const NccJob& job) { return ScoreLayout(tiling_for(job)).bytes(); }

void F32Scores::launch_scores(const NccJob& job, Criterion, ScoreKind kind, float* scores, Workspace&,
                              StreamHandle stream) {
  launch(job, {.kind = kind, .scores = scores}, stream);
}

void F32Scores::launch_peaks(const NccJob& job, Criterion, Peak* peaks, Workspace&, StreamHandle stream) {
  launch(job, {.peaks = peaks}, stream);
}

}  // namespace dic::kernels
