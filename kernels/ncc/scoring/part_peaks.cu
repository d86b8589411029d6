#include "ncc/scoring/part_peaks.cuh"

namespace dic::kernels {
namespace {

/// Division of the shifts of a pair into parts.
struct PartGrid {
  int parts_x, parts_y, columns, rows;

  __host__ __device__ int count() const { return parts_x * parts_y; }
};

/// The parts within 2 px of a peak; none if there is no peak.
struct NearParts {
  int first_x = 0, last_x = -1, first_y = 0, last_y = -1;

  __device__ NearParts(const JobView& view, const PartGrid& grid, const Best& peak) {
    if (peak.score == undefined) return;
    const int x = peak.index % view.nx, y = peak.index / view.nx;
    first_x = max(x - 2, 0) / grid.columns, last_x = min(x + 2, view.nx - 1) / grid.columns;
    first_y = max(y - 2, 0) / grid.rows, last_y = min(y + 2, view.ny - 1) / grid.rows;
  }
  __device__ bool holds(int x, int y) const {
    return x >= first_x && x <= last_x && y >= first_y && y <= last_y;
  }
};

/// Merges the parts of one pair per block.
__global__ void merge_parts(const __grid_constant__ JobView view, const __grid_constant__ PartGrid grid,
                            const __grid_constant__ PartPeaks peaks) {
  const int parts = grid.count(), thread = threadIdx.x;
  for_each_task(view.pairs, 1, 0, [&](std::int64_t pair) {
    const Best* const pair_bests = peaks.bests + pair * parts;
    Best best = Best::none();
    for (int i = thread; i < parts; i += blockDim.x) best.take(pair_bests[i]);
    best = best_of_block(best);

    const NearParts near(view, grid, best);
    Best beyond = Best::none();
    for (int i = thread; i < parts; i += blockDim.x)
      if (!near.holds(i % grid.parts_x, i / grid.parts_x)) beyond.take(pair_bests[i]);
    beyond = best_of_block(beyond);
    PairPeak& peak = peaks.pairs[pair];
    if (thread == 0) {
      peak.best = best, peak.beyond = beyond.score;
      peak.second = order_preserving(__float_as_int(undefined));
    }
    if (thread < neighbours) peak.around[thread] = undefined;
    const int x = near.first_x + thread % 2, y = near.first_y + thread / 2;
    if (thread < most_near_parts && near.holds(x, y))
      peaks.near.parts[atomicAdd(peaks.near.count, 1)] = pair * parts + y * grid.parts_x + x;
  });
}

/// Stores the peak of one pair per warp.
__global__ void store_peaks(const __grid_constant__ JobView view, const __grid_constant__ PartPeaks peaks,
                            Criterion criterion, Peak* out) {
  for_each_task(view.pairs, blockDim.x / warp_size, threadIdx.x / warp_size, [&](std::int64_t pair) {
    const PairPeak& peak = peaks.pairs[pair];
    const int index = max(peak.best.index, 0), x = index % view.nx, y = index / view.nx;
    const auto score_at = [&](int to_x, int to_y) {
      return peak.around[neighbours / 2 + 3 * (to_y - y) + to_x - x];
    };
    store_peak(view, criterion, {score_at(x, y), x, y}, __int_as_float(order_preserving(peak.second)),
               out + pair, score_at);
  });
}

}  // namespace

void launch_merged_parts(const NccJob& job, const Tasks& tasks, int columns, int rows, const PartPeaks& peaks,
                         StreamHandle stream) {
  constexpr int few_parts = 256;
  const int threads = tasks.parts() <= few_parts ? warp_size : most_warps_of_block * warp_size;
  fill(peaks.near.count, 0, sizeof(int), stream);
  merge_parts<<<grid_size(job.pairs, 1), threads, 0, stream>>>(
      make_job_view(job), {tasks.parts_x, tasks.parts_y, columns, rows}, peaks);
  check_launch(describe("best parts", job));
}

void launch_part_peaks(const NccJob& job, Criterion criterion, const PartPeaks& peaks, Peak* out,
                       StreamHandle stream) {
  constexpr int warps = 4;
  store_peaks<<<grid_size(job.pairs, warps), warps * warp_size, 0, stream>>>(make_job_view(job), peaks,
                                                                             criterion, out);
  check_launch(describe("peaks of parts", job));
}

}  // namespace dic::kernels
