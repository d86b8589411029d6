#include <dic/kernels/follow_peaks.hpp>

#include "common/shared_memory.hpp"
#include "ncc/scoring/find_peak.cuh"
#include "ncc/tensor/few_shifts.cuh"
#include "points/start_windows.cuh"

// Search of points with small windows that move until the peak is inside. A warp keeps its point until then:
// the subset stays in shared memory, and other points do not wait for the few that take many steps.
namespace dic::kernels {
namespace {

constexpr int most_shifts = 5;       ///< along an axis
constexpr int resident_blocks = 20;  ///< per multiprocessor

/// The point of a warp, in shared memory.
struct Followed {
  PatchPosition reference, window;
  int h = 0, w = 0;  ///< size of the subset
  int steps = 0;     ///< steps left
  float best = -1;   ///< best score so far
  Peak peak;

  /// The images of the job with one position.
  __device__ static DevicePatches at(const DevicePatches& images, const PatchPosition& position) {
    DevicePatches one = images;
    one.positions = &position;
    return one;
  }
  __device__ void begin(const GridPoints& points, std::int32_t i, const FollowedSearch& search) {
    const PointStart& start = search.starts[i];
    const PreparedSubset& s = points.subsets[i];
    steps = search.steps;
    best = start.score;
    h = s.bottom - s.top + 1;
    w = s.right - s.left + 1;
    reference = first_pixel_of(points, i);
    window = window_around(reference, start.u, start.shape.u[0], start.v, start.shape.v[0], search.range);
  }
  __device__ void move(int range) {
    --steps;
    best = peak.score;
    const auto [u, v] = displacement_at(reference, window, peak);
    window = window_around(reference, u.whole, u.rest, v.whole, v.rest, range);
  }
  /// Stores window and peak. All lanes must call it.
  __device__ void store(PatchPosition* window_out, Peak* peak_out) const {
    constexpr int words = sizeof(Peak) / sizeof(int);
    static_assert(words <= warp_size);
    if (threadIdx.x < words)
      reinterpret_cast<int*>(peak_out)[threadIdx.x] = reinterpret_cast<const int*>(&peak)[threadIdx.x];
    if (threadIdx.x == 0) *window_out = window;
  }
};

__global__ void __launch_bounds__(warp_size, resident_blocks)
    follow_peaks(const __grid_constant__ JobView view, const __grid_constant__ few::Layout layout,
                 const __grid_constant__ GridPoints points, const __grid_constant__ FollowedSearch search) {
  extern __shared__ uint4 shared[];
  __shared__ few::Surface<most_shifts> surface;
  __shared__ Followed followed;
  few::PairScores<most_shifts> pair(view, layout, reinterpret_cast<Word*>(shared), surface);
  const bool leads = threadIdx.x == 0;
  const auto count = static_cast<std::uint32_t>(view.pairs);  // 32 bits: registers are scarce
  for (std::uint32_t task = blockIdx.x; task < count; task += gridDim.x) {
    const std::int32_t i = search.list[task];
    if (i < 0 || search.starts[i].score == PointStart::kLeftToNeighbours) continue;
    if (leads) followed.begin(points, i, search);
    __syncwarp();
    pair.take_reference(Followed::at(view.reference, followed.reference), 0, followed.h, followed.w);
    for (bool first = true;; first = false) {
      pair.score(Followed::at(view.search, followed.window), 0, Criterion::zncc);
      find_peak(view, Criterion::zncc, surface.scores, most_shifts, &followed.peak);
      __syncwarp();
      const Peak& peak = followed.peak;
      const bool as_good = peak.found && peak.score >= followed.best;
      if (as_good || first) followed.store(search.windows + task, search.peaks + task);
      if (!as_good || !peak.at_border || followed.steps == 0) break;
      __syncwarp();
      if (leads) followed.move(search.range);
      __syncwarp();
    }
    __syncwarp();  // the next point reuses the memory
  }
}

__global__ void __launch_bounds__(point_threads)
    take_peaks(const __grid_constant__ GridPoints points, std::int64_t n,
               const __grid_constant__ FollowedSearch search) {
  for_each_point(n, [&](std::int32_t k) {
    const std::int32_t i = search.list[k];
    if (i < 0) return;
    take_peak(first_pixel_of(points, i), search.windows[k], search.peaks[k], search.starts[i]);
  });
}

}  // namespace

std::string follow_unsupported_reason(const NccJob& job) {
  if (job.type != ScalarType::u8 || job.masks || std::max(job.shifts.nx(), job.shifts.ny()) > most_shifts)
    return "Peaks are followed in up to 5x5 shifts of 8-bit images.";
  if (few::Layout(job).bytes() > few::most_shared_bytes)
    return "Peaks are followed of references up to 128x128.";
  return {};
}

void launch_follow_peaks(const NccJob& job, const GridPoints& points, const FollowedSearch& search,
                         StreamHandle stream) {
  if (job.pairs == 0) return;
  const few::Layout layout(job);
  const std::string what = describe("following peaks", job);
  allow_shared_memory(follow_peaks, layout.bytes(), what);
  follow_peaks<<<grid_size(job.pairs, few::pairs_of_block(job.pairs)), warp_size, layout.bytes(), stream>>>(
      make_job_view(job), layout, points, search);
  take_peaks<<<grid_size(job.pairs, point_threads), point_threads, 0, stream>>>(points, job.pairs, search);
  check_launch(what);
}

}  // namespace dic::kernels
