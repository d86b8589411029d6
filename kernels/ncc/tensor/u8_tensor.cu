#include <algorithm>
#include <iterator>

#include "ncc/scoring/window_statistics.cuh"
#include "ncc/tensor/u8_sparse.hpp"
#include "ncc/tensor/u8_tiling.cuh"
#include "ncc/variants.hpp"

// The host part of cuda-u8-tensor: division of the work, and launches. The kernel is in u8_tensor.cuh.
namespace dic::kernels {

using namespace u8_tensor;

namespace {

/// Stride of rows of whole chunks that begin 12 or 20 banks apart, so that 8 words of two neighbouring rows
/// have no bank conflict.
int spread(int words) {
  int stride = round_up(words, 4);
  while (stride % 32 != 12 && stride % 32 != 20) stride += 4;
  return stride;
}

/// Chooses a shape with a known stride, if one fits and is compiled. A single warp with a tail and a large
/// window is replaced by two, between which k is split.
WarpShape with_stride(const Tiling& tiling, int reference_stride) {
  const bool one_warp = tiling.warps_x * tiling.warps_y == 1;
  for (const int stride : {small_stride, large_stride}) {
    const bool in_two = tiling.warp.tail && stride == large_stride && one_warp;
    const WarpShape shape{tiling.warp.tiles, tiling.warp.tail, stride, in_two ? 2 : 1};
    if (tiling.k.window_stride == stride && reference_stride <= shape.reference_stride() &&
        tiling.columns() <= shape.tile_stride() && (one_warp || !shape.alone) &&
        std::ranges::find(warp_shapes, shape) != std::end(warp_shapes))
      return shape;
  }
  return tiling.warp;
}

Tiling make_tiling(const NccJob& job, Result output, WarpShape warp, int warps_x, int warps_y) {
  const int h = job.reference.height, w = job.reference.width;
  Tiling tiling;
  tiling.warp = warp, tiling.warps_x = warps_x, tiling.warps_y = warps_y;
  tiling.k.rows = round_up(h + 1, 4);
  tiling.k.words = (w + 3 + 3 + 3) / 4;
  // This leaves room for the first word of a warp's last step, and for whole chunks.
  tiling.window_chunks = Divisor(most_chunks(tiling.columns() + w - 1));
  tiling.reference_chunks = Divisor(most_chunks(w));
  tiling.k.window_stride = spread(
      std::max(tiling.k.words + tiling.columns() / 4 + 2, tiling.window_chunks.divisor * chunk_bytes / 4));
  const int reference_stride = round_up(reference_pad / 4 + 4 + tiling.k.words, 4);
  tiling.warp = with_stride(tiling, reference_stride);
  tiling.k.reference_stride = tiling.warp.stride > 0 ? tiling.warp.reference_stride() : reference_stride;
  const int rows = warps_y * tiling.warp.tile_rows();
  // The last step of one word loads 8 more rows.
  tiling.window_words = (round_up(tiling.k.rows, 8) + rows + 6) * tiling.k.window_stride;
  if (output == Result::peaks)
    tiling.window_words = std::max(tiling.window_words, rows * tiling.warp.tile_stride());
  if (tiling.warp.split_k > 1)
    tiling.window_words = std::max(tiling.window_words, (tiling.warp.rows() + 2) * warp_size);
  return tiling;
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
  /// True if they cost less than blocks of 32 or 64 columns, counted in products per step.
  bool pay(const Shifts& shifts) const {
    const int warps_x = (shifts.nx() + columns_per_warp - 1) / columns_per_warp;
    const int tiles = (shifts.ny() + rows_per_tile - 1) / rows_per_tile;
    return (with_tail.tiles + 1) * x * y < (warps_x == 1 ? 1 : round_up(warps_x, 2)) * tiles;
  }
  bool fit_a_block() const { return x * y > 1 && x <= 2 && y <= 2; }

 private:
  static int warps(int shifts) { return (shifts + columns_per_warp) / (columns_per_warp + 1); }
};

/// Tiling for a job. Whether it fits follows from its shared_bytes().
Tiling choose_tiling(const NccJob& job, Result output) {
  const int tiles = (job.shifts.ny() + rows_per_tile - 1) / rows_per_tile;
  if (const TailWarps warps(job.shifts); warps.pay(job.shifts)) {
    if (warps.fit_a_block())
      if (const Tiling tiling = make_tiling(job, output, with_tail, warps.x, warps.y); tiling.warp.stride > 0)
        return tiling;
    if (const Tiling tiling = make_tiling(job, output, with_tail, 1, 1); tiling.warp.stride > 0)
      return tiling;
  }
  const int warps_x = job.shifts.nx() <= columns_per_warp ? 1 : 2;
  if (tiles <= most_tiles) {
    const Tiling tiling = make_tiling(job, output, shape_for(tiles, 1), warps_x, 1);
    if (tiling.shared_bytes() <= crowded_bytes * warps_x) return tiling;
  }
  const WarpShape warp = tiles <= 2 * most_tiles ? shape_for(tiles, 2) : WarpShape{8, false};
  const Tiling tiling = make_tiling(job, output, warp, warps_x, 2);
  if (tiling.shared_bytes() <= most_shared_bytes) return tiling;
  return make_tiling(job, output, {std::min(warp.tiles, 8), false}, 1, 1);
}

template <Result output>
void launch(const NccJob& job, const StatisticsTable& statistics, const Scoring& scoring,
            StreamHandle stream) {
  const Tiling tiling = choose_tiling(job, output);
  launch_tiling<output>(job, tiling, PartTasks(Tasks(job, tiling.columns(), tiling.rows())), statistics,
                        scoring, stream);
}

/// Queues peaks of pairs whose shifts are divided among several blocks; `memory`: PartPeaks::scratch.
void launch_peaks_of_parts(const NccJob& job, StatisticsTable statistics, Criterion criterion, Peak* out,
                           std::byte* memory, StreamHandle stream) {
  const Tiling tiling = choose_tiling(job, Result::parts);
  const Tasks tasks(job, tiling.columns(), tiling.rows());
  const PartPeaks peaks(memory, tasks, job.pairs);
  const Scoring scoring{{.criterion = criterion}, peaks};
  launch_tiling<Result::parts>(job, tiling, PartTasks(tasks), statistics, scoring, stream);
  launch_merged_parts(job, tasks, tiling.columns(), tiling.rows(), peaks, stream);
  statistics.order = nullptr;
  launch_tiling<Result::parts>(job, tiling, PartTasks(tasks, peaks.near), statistics, scoring, stream);
  launch_part_peaks(job, criterion, peaks, out, stream);
}

Result result_for_peaks(const NccJob& job) {
  const Tiling tiling = choose_tiling(job, Result::peaks);
  return tiling.columns() >= job.shifts.nx() && tiling.rows() >= job.shifts.ny() ? Result::peaks
                                                                                 : Result::parts;
}

bool tiling_fits(const NccJob& job, const Tiling& tiling) {
  const int row_bytes = tiling.columns() + job.reference.width - 1;  // every chunk of the row needs a thread
  return tiling.shared_bytes() <= most_shared_bytes && most_chunks(row_bytes) <= tiling.threads();
}

}  // namespace

std::string U8Tensor::unsupported_reason(const NccJob& job) {
  if (job.sums != SurfaceType::u32) return "cuda-u8-tensor sums in 32 bits.";
  if (job.shifts.count() > 0 && !tiling_fits(job, choose_tiling(job, Result::sums)))
    return "cuda-u8-tensor does references up to about 255x255.";
  return {};
}

/// Shared memory for the job: 160 KB hold window and reference of 255x255 elements, the 99 KB of desktop GPUs
/// those of 128x128.
int U8Tensor::shared_bytes(const NccJob& job) {
  const bool large = std::max(job.reference.height, job.reference.width) > 128;
  return large ? most_shared_bytes : 99 * 1024;
}

bool U8Tensor::fits(const NccJob& job, FusedOutput fused) {
  const Result output = fused == FusedOutput::peaks ? result_for_peaks(job) : Result::scores;
  const Tiling tiling = choose_tiling(job, output);
  const bool small = job.reference.height * job.reference.width <= 257 * 257;  // 32 bits hold the squares
  return small && statistics_fit(job) && tiling_fits(job, tiling) && is_compiled(tiling.warp, output);
}

void U8Tensor::launch_sums(const NccJob& job, void* out, Workspace&, StreamHandle stream) {
  launch<Result::sums>(job, {}, {{.sums = static_cast<Word*>(out)}}, stream);
}

void U8Tensor::launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                             Workspace& workspace, StreamHandle stream) {
  with_statistics(
      job, criterion, {}, workspace, stream,
      [&](const NccJob& part, std::int64_t pairs_before, const StatisticsTable& statistics, std::byte*) {
        float* const part_scores = scores + pairs_before * job.shifts.count();
        launch<Result::scores>(part, statistics,
                               {{.criterion = criterion, .kind = kind, .scores = part_scores}}, stream);
      });
}

void U8Tensor::launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                            StreamHandle stream) {
  const Tiling tiling = choose_tiling(job, Result::parts);
  const bool in_parts = result_for_peaks(job) == Result::parts;
  const int parts = Tasks(job, tiling.columns(), tiling.rows()).parts();
  with_statistics(job, criterion, in_parts ? PartPeaks::scratch(parts) : Scratch{}, workspace, stream,
                  [&](const NccJob& part, std::int64_t pairs_before, const StatisticsTable& statistics,
                      std::byte* scratch) {
                    Peak* const out = peaks + pairs_before;
                    if (launch_u8_sparse_peaks(part, statistics, criterion, out, stream)) return;
                    if (in_parts)
                      launch_peaks_of_parts(part, statistics, criterion, out, scratch, stream);
                    else
                      launch<Result::peaks>(part, statistics, {{.criterion = criterion, .peaks = out}},
                                            stream);
                  });
}

}  // namespace dic::kernels
