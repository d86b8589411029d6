#include <algorithm>
#include <iterator>

#include "ncc/scoring/window_statistics.cuh"
#include "ncc/tensor/u8_cut.cuh"
#include "ncc/tensor/u8_sparse.hpp"
#include "ncc/variants.hpp"

// cuda-u8-tensor on the host: how the work is divided, and the launches. The kernel is in u8_tensor.cuh.
namespace dic::kernels {

using namespace u8_tensor;

namespace {

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
  const bool one_warp = cut.warps_x * cut.warps_y == 1;
  for (const int stride : {small_stride, large_stride}) {
    const bool in_two = cut.warp.tail && stride == large_stride && one_warp;
    const WarpShape shape{cut.warp.tiles, cut.warp.tail, stride, in_two ? 2 : 1};
    if (cut.k.window_stride == stride && reference_stride <= shape.reference_stride() &&
        cut.columns() <= shape.tile_stride() && (one_warp || !shape.alone) &&
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
  const int rows = warps_y * cut.warp.tile_rows();
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

template <Result output>
void launch(const NccJob& job, const StatisticsTable& statistics, const Scoring& scoring,
            StreamHandle stream) {
  const Cut cut = choose_cut(job, output);
  launch_cut<output>(job, cut, PartTasks(Tasks(job, cut.columns(), cut.rows())), statistics, scoring, stream);
}

/// Peaks of pairs that several blocks have a part of each; `memory`: PartPeaks::scratch.
void launch_peaks_of_parts(const NccJob& job, StatisticsTable statistics, Criterion criterion, Peak* out,
                           std::byte* memory, StreamHandle stream) {
  const Cut cut = choose_cut(job, Result::parts);
  const Tasks tasks(job, cut.columns(), cut.rows());
  const PartPeaks peaks(memory, tasks, job.pairs);
  const Scoring scoring{{.criterion = criterion}, peaks};
  launch_cut<Result::parts>(job, cut, PartTasks(tasks), statistics, scoring, stream);
  launch_merged_parts(job, tasks, cut.columns(), cut.rows(), peaks, stream);
  statistics.order = nullptr;
  launch_cut<Result::parts>(job, cut, PartTasks(tasks, peaks.near), statistics, scoring, stream);
  launch_part_peaks(job, criterion, peaks, out, stream);
}

Result result_for_peaks(const NccJob& job) {
  const Cut cut = choose_cut(job, Result::peaks);
  return cut.columns() >= job.shifts.nx() && cut.rows() >= job.shifts.ny() ? Result::peaks : Result::parts;
}

bool cut_fits(const NccJob& job, const Cut& cut) {
  const int row_bytes = cut.columns() + job.reference.width - 1;  // copied by a block at once
  return cut.shared_bytes() <= most_shared_bytes && most_chunks(row_bytes) <= cut.threads();
}

}  // namespace

std::string U8Tensor::unsupported_reason(const NccJob& job) {
  if (job.sums != SurfaceType::u32) return "cuda-u8-tensor sums in 32 bits.";
  if (job.shifts.count() > 0 && !cut_fits(job, choose_cut(job, Result::sums)))
    return "cuda-u8-tensor does references up to about 255x255.";
  return {};
}

/// 160 KB hold window and reference of 255x255 elements, the 99 KB of desktop GPUs those of 128x128.
int U8Tensor::shared_bytes(const NccJob& job) {
  const bool large = std::max(job.reference.height, job.reference.width) > 128;
  return large ? most_shared_bytes : 99 * 1024;
}

bool U8Tensor::fits(const NccJob& job, FusedOutput fused) {
  const Result output = fused == FusedOutput::peaks ? result_for_peaks(job) : Result::scores;
  const Cut cut = choose_cut(job, output);
  const bool small = job.reference.height * job.reference.width <= 257 * 257;  // 32 bits hold the squares
  return small && statistics_fit(job) && cut_fits(job, cut) && is_compiled(cut.warp, output);
}

void U8Tensor::launch_sums(const NccJob& job, void* out, Workspace&, StreamHandle stream) {
  launch<Result::sums>(job, {}, {{.sums = static_cast<Word*>(out)}}, stream);
}

void U8Tensor::launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                             Workspace& workspace, StreamHandle stream) {
  with_statistics(
      job, criterion, {}, workspace, stream,
      [&](const NccJob& part, std::int64_t first_pair, const StatisticsTable& statistics, std::byte*) {
        float* const part_scores = scores + first_pair * job.shifts.count();
        launch<Result::scores>(part, statistics,
                               {{.criterion = criterion, .kind = kind, .scores = part_scores}}, stream);
      });
}

void U8Tensor::launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                            StreamHandle stream) {
  const Cut cut = choose_cut(job, Result::parts);
  const bool in_parts = result_for_peaks(job) == Result::parts;
  const int parts = Tasks(job, cut.columns(), cut.rows()).parts();
  with_statistics(job, criterion, in_parts ? PartPeaks::scratch(parts) : Scratch{}, workspace, stream,
                  [&](const NccJob& part, std::int64_t first_pair, const StatisticsTable& statistics,
                      std::byte* scratch) {
                    Peak* const out = peaks + first_pair;
                    if (launch_u8_sparse_peaks(part, statistics, criterion, out, stream)) return;
                    if (in_parts)
                      launch_peaks_of_parts(part, statistics, criterion, out, scratch, stream);
                    else
                      launch<Result::peaks>(part, statistics, {{.criterion = criterion, .peaks = out}},
                                            stream);
                  });
}

}  // namespace dic::kernels
