#include "common/shared_memory.hpp"
#include "ncc/scoring/find_peak.cuh"
#include "ncc/tensor/few_shifts.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

/// Output of a launch: the scores of all shifts, or the peaks of all pairs.
struct Output {
  Criterion criterion;
  ScoreKind kind = ScoreKind::score;
  float* scores = nullptr;
  Peak* peaks = nullptr;
};

template <int shifts>
__device__ void store_scores(const JobView& view, const Output& out, const float* scores, std::int64_t pair) {
  float* const surface = out.scores + pair * view.nx * view.ny;
#pragma unroll 1
  for (int i = threadIdx.x % warp_size; i < shifts * view.ny; i += warp_size) {
    const int y = i / shifts, x = i % shifts;
    if (x < view.nx)
      surface[y * view.nx + x] =
          out.kind == ScoreKind::value ? value_of(scores[i], out.criterion) : scores[i];
  }
}

template <int shifts>
__global__ void __launch_bounds__(warp_size, shifts <= 5 ? 20 : 12)
    few_shifts(const __grid_constant__ JobView view, const __grid_constant__ few::Layout layout,
               const __grid_constant__ Output out) {
  extern __shared__ uint4 shared[];
  __shared__ few::Surface<shifts> surface;
  few::PairScores<shifts> pair(view, layout, reinterpret_cast<Word*>(shared), surface);
  for_each_task(view.pairs, 1, 0, [&](std::int64_t task) {
    pair.take_reference(view.reference, view.reference_of(task), view.reference.height, view.reference.width);
    pair.score(view.search, view.window_of(task), out.criterion);
    if (out.scores) store_scores<shifts>(view, out, surface.scores, task);
    if (out.peaks) find_peak(view, out.criterion, surface.scores, shifts, out.peaks + task);
    __syncwarp();  // the next pair overwrites the memory
  });
}

template <int shifts>
void launch_width(const NccJob& job, const Output& out, StreamHandle stream) {
  const auto kernel = few_shifts<shifts>;
  const few::Layout layout(job);
  allow_shared_memory(kernel, layout.bytes(), describe("cuda-few-shifts", job));
  kernel<<<grid_size(job.pairs, few::pairs_of_block(job.pairs)), warp_size, layout.bytes(), stream>>>(
      make_job_view(job), layout, out);
  check_launch(describe("cuda-few-shifts", job));
}

void launch(const NccJob& job, const Output& out, StreamHandle stream) {
  if (job.outputs() == 0) return;
  if (job.shifts.nx() <= 5) return launch_width<5>(job, out, stream);
  if (job.shifts.nx() <= 7) return launch_width<7>(job, out, stream);
  launch_width<9>(job, out, stream);
}

}  // namespace

std::string FewShifts::unsupported_reason(const NccJob& job) {
  if (std::max(job.shifts.nx(), job.shifts.ny()) > few::most_shifts)
    return "cuda-few-shifts does up to 9x9 shifts.";
  if (few::Layout(job).bytes() > few::most_shared_bytes)
    return "cuda-few-shifts does references up to 128x128.";
  return {};
}

void FewShifts::launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                              Workspace&, StreamHandle stream) {
  launch(job, {.criterion = criterion, .kind = kind, .scores = scores}, stream);
}

void FewShifts::launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace&,
                             StreamHandle stream) {
  launch(job, {.criterion = criterion, .peaks = peaks}, stream);
}

}  // namespace dic::kernels
