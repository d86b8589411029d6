#include "ncc/job_view.cuh"
#include "ncc/scoring/scoring.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / warp_size;

template <typename T>
__global__ void __launch_bounds__(threads)
    reference_moments(const __grid_constant__ JobView view, Moments<T>* out) {
  const int lane = threadIdx.x % warp_size;
  for_each_task(view.reference.count, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    const auto reference = load_patch<T>(view.reference, task);
    MomentSums<T> sums(*reference.row(0));
    for (int y = 0; y < view.reference.height; ++y)
      for (int x = lane; x < view.reference.width; x += warp_size) sums.add(reference.row(y)[x]);
    sums.sum_over_warp();
    if (lane == 0) out[task] = sums.moments(std::int64_t{view.reference.height} * view.reference.width);
  });
}

/// Value that is stored for a shift.
struct StoredScore {
  Criterion criterion;
  ScoreKind kind;
};

/// Scores `rows` vertically neighbouring shifts of one pair per thread. The sums over the window under the
/// reference slide down: a row is added, a row is subtracted.
template <typename T, typename Sum>
__global__ void __launch_bounds__(threads) scores(const __grid_constant__ JobView view, std::int64_t tasks,
                                                  int rows, const __grid_constant__ StoredScore stored,
                                                  const Sum* sums, const Moments<T>* references, float* out) {
  const int groups = (view.ny + rows - 1) / rows;
  const int h = view.reference.height, w = view.reference.width;
  const std::int64_t n = std::int64_t{h} * w;
  const auto [criterion, kind] = stored;
  for_each_task(tasks, threads, threadIdx.x, [&](std::int64_t task) {
    const auto column = static_cast<int>(task % view.nx);
    const auto first_row = static_cast<int>(task / view.nx % groups) * rows;
    const std::int64_t pair = task / view.nx / groups;
    const auto window = load_patch<T>(view.search, view.window_of(pair));
    const Moments<T> reference = references[view.reference_of(pair)];
    const int x = view.dx_min + column;
    const int first = view.dy_min + first_row, last = min(first + rows, view.dy_min + view.ny) - 1;
    const bool inside = x >= window.x0 && x + w <= window.x1;
    const int first_inside = max(first, window.y0), last_inside = min(last, window.y1 - h);
    const bool some_inside = inside && first_inside <= last_inside;

    MomentSums<T> under(some_inside ? window.row(first_inside)[x] : T{0});
    const auto add_row = [&](int y) {
      const T* row = window.row(y) + x;
      for (int i = 0; i < w; ++i) under.add(row[i]);
    };
    if (some_inside)
      for (int y = first_inside; y < first_inside + h - 1; ++y) add_row(y);
    for (int y = first; y <= last; ++y) {
      const std::int64_t index = (pair * view.ny + y - view.dy_min) * view.nx + column;
      float result = undefined;
      if (inside && y >= first_inside && y <= last_inside) {
        add_row(y + h - 1);
        result = score<T>(criterion, n, sums[index], reference, under.moments(n));
        for (int i = 0; i < w; ++i) under.remove(window.row(y)[x + i]);
      }
      out[index] = kind == ScoreKind::value ? value_of(result, criterion) : result;
    }
  });
}

/// Parts of a surface; a block searches each.
struct Parts {
  int count, size;

  explicit Parts(const NccJob& job) {
    constexpr std::int64_t shifts_of_part = 8192, most = 1024;
    const std::int64_t shifts = std::max<std::int64_t>(job.shifts.count(), 1);
    count = static_cast<int>(std::clamp<std::int64_t>(shifts / shifts_of_part, 1, most));
    size = static_cast<int>((shifts + count - 1) / count);
  }
};

/// The best of the parts of one surface, returned in every thread.
__device__ Best best_of_parts(const Best* bests, const Parts& parts) {
  Best best = Best::none();
  for (int i = threadIdx.x; i < parts.count; i += threads) best.take(bests[i]);
  return best_of_block(best);
}

/// Finds the best score of a part of a surface per block. With `peaks`, the results of a first launch, it
/// finds the best of those far from the surface's peak: a part without shifts near the peak is not searched
/// again.
__global__ void __launch_bounds__(threads)
    best_of_surfaces(const __grid_constant__ JobView view, const __grid_constant__ Parts parts,
                     const float* scores, const Best* peaks, Best* out) {
  const int shifts = view.nx * view.ny;
  for_each_task(view.pairs * parts.count, 1, 0, [&](std::int64_t task) {
    const std::int64_t pair = task / parts.count;
    const int first = static_cast<int>(task - pair * parts.count) * parts.size;
    const int end = min(first + parts.size, shifts);
    const Best peak = peaks ? best_of_parts(peaks + pair * parts.count, parts) : Best::none();
    const int reach = 2 * view.nx + 2;
    if (peaks && (end <= peak.index - reach || first > peak.index + reach)) {
      if (threadIdx.x == 0) out[task] = peaks[task];
      return;
    }
    const float* surface = scores + pair * shifts;
    Best best = Best::none();
#pragma unroll 4
    for (int i = first + threadIdx.x; i < end; i += threads) {
      const float score = surface[i];
      if (score > best.score && (peak.index < 0 || is_far(i, peak.index, view.nx))) best = {score, i};
    }
    best = best_of_block(best);
    if (threadIdx.x == 0) out[task] = best;
  });
}

__global__ void __launch_bounds__(threads)
    peaks_of_parts(const __grid_constant__ JobView view, const __grid_constant__ Parts parts,
                   Criterion criterion, const float* scores, const Best* first, const Best* second,
                   Peak* out) {
  for_each_task(view.pairs, 1, 0, [&](std::int64_t pair) {
    const Best best = best_of_parts(first + pair * parts.count, parts);
    const Best other = best_of_parts(second + pair * parts.count, parts);
    if (threadIdx.x < warp_size)
      store_peak(view, criterion, scores + pair * view.nx * view.ny, view.nx, best, other, out + pair);
  });
}

}  // namespace

SurfaceType sums_for_scores(ScalarType type, int reference_height, int reference_width) {
  // 257 x 257 elements of 255 * 255 are the most that 32 bits hold.
  const bool fits_32_bits = std::int64_t{reference_height} * reference_width <= 257 * 257;
  switch (type) {
    case ScalarType::u8:
      return fits_32_bits ? SurfaceType::u32 : SurfaceType::u64;
    case ScalarType::u16:
      return SurfaceType::u64;
    case ScalarType::i32:
      return SurfaceType::i64;
    case ScalarType::f32:
    case ScalarType::f64:
      break;
  }
  return SurfaceType::f64;
}

void launch_reference_moments(const NccJob& job, void* moments, StreamHandle stream) {
  if (job.reference.count == 0) return;
  visit_scalar(job.type, [&]<typename T>(T) {
    reference_moments<T><<<grid_size(job.reference.count, warps), threads, 0, stream>>>(
        make_job_view(job), static_cast<Moments<T>*>(moments));
  });
  check_launch(describe("moments of the references", job));
}

void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, const void* sums,
                   const void* moments, float* out, StreamHandle stream) {
  if (job.outputs() == 0) return;
  const JobView view = make_job_view(job);
  // The first shift of a group costs h rows of sums, every further one 2.
  const int rows = std::max(16, view.reference.height);
  const std::int64_t tasks = view.pairs * view.nx * ((view.ny + rows - 1) / rows);
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    scores<T, Sum><<<grid_size(tasks, threads), threads, 0, stream>>>(
        view, tasks, rows, {criterion, kind}, static_cast<const Sum*>(sums),
        static_cast<const Moments<T>*>(moments), out);
  });
  check_launch(describe("scores", job));
}

std::size_t peaks_workspace_bytes(const NccJob& job) {
  return 2 * sizeof(Best) * static_cast<std::size_t>(job.pairs) * Parts(job).count;
}

void launch_peaks(const NccJob& job, Criterion criterion, const float* scores, Peak* out, void* workspace,
                  StreamHandle stream) {
  if (job.outputs() == 0) return;
  const JobView view = make_job_view(job);
  const Parts parts(job);
  const std::int64_t tasks = job.pairs * parts.count;
  auto* const first = static_cast<Best*>(workspace);
  auto* const second = first + tasks;
  best_of_surfaces<<<grid_size(tasks, 1), threads, 0, stream>>>(view, parts, scores, nullptr, first);
  best_of_surfaces<<<grid_size(tasks, 1), threads, 0, stream>>>(view, parts, scores, first, second);
  peaks_of_parts<<<grid_size(job.pairs, 1), threads, 0, stream>>>(view, parts, criterion, scores, first,
                                                                  second, out);
  check_launch(describe("peaks", job));
}

}  // namespace dic::kernels
