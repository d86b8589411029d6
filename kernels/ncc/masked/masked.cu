#include <algorithm>
#include <array>

#include "ncc/masked/packed_references.cuh"
#include "ncc/masked/sums_under_mask.cuh"
#include "ncc/scoring/find_peak.cuh"
#include "ncc/variants.hpp"

// Correlation of references of which only some elements count. The references are packed with zeros in place
// of the other elements, so that any variant can sum their products. The sums over the window under the
// elements that count come from running sums along the window's rows: the sum over a run of such elements in
// a row of the reference is the difference of two running sums. If the elements that count form a rectangle,
// as at straight edges, four sums over rows and columns are enough.
namespace dic::kernels {

using namespace masked;

namespace {

/// Output of a launch: the scores of all shifts, or the peaks of all pairs.
struct MaskedOutput {
  ScoreKind kind = ScoreKind::score;
  float* scores = nullptr;
  Peak* peaks = nullptr;  ///< used if a tile has all shifts
};

/// Number of blocks for which a multiprocessor must have registers: as many as fit without spills.
template <typename Value>
__host__ __device__ constexpr int least_blocks(int shifts) {
  if (sizeof(Value) == 4 && shifts == 1) return 8;
  return std::is_floating_point_v<Value> ? 4 : 5;
}

/// Scores a tile of one pair's shifts per block. `view`: view of the packed references.
template <typename T, typename Sum, int kShifts>
__global__ void __launch_bounds__(threads, least_blocks<RunningSum<T, Sum>>(kShifts))
    masked_scores(const __grid_constant__ JobView view, const __grid_constant__ MaskedReferences references,
                  const __grid_constant__ MaskedTiling tiling, Criterion criterion, const Sum* products,
                  const __grid_constant__ MaskedOutput out) {
  using Value = RunningSum<T, Sum>;
  using Under = SumsUnderMask<Value, kShifts>;
  extern __shared__ uint4 shared[];
  __shared__ union {
    float scores[threads * Under::count];
    uint4 sums_by_thread[threads * sizeof(typename Under::Sums) / sizeof(uint4)];
  } result;
  const BandMemory<Value> memory(tiling, shared);
  const int h = view.reference.height, w = view.reference.width;
  const int tiles = tiling.across * tiling.down, threads_of_part = threads / tiling.parts;
  const int part = static_cast<int>(threadIdx.x) / threads_of_part;
  const int first_shift = static_cast<int>(threadIdx.x) % threads_of_part;
  for_each_task(view.pairs * tiles, 1, 0, [&](std::int64_t task) {
    const std::int64_t pair = tiles == 1 ? task : task / tiles;
    const auto tile = static_cast<int>(task - pair * tiles);
    const int x = tile % tiling.across * tiling.columns, y = tile / tiling.across * tiling.rows;
    const int shifts_x = min(tiling.columns, view.nx - x), shifts_y = min(tiling.rows, view.ny - y);
    const int shifts = shifts_x * shifts_y, dx = view.dx_min + x, dy = view.dy_min + y;
    const auto window = load_patch<T>(view.search, view.window_of(pair));
    const bool exists = window.x0 < window.x1 && window.y0 < window.y1;
    const T origin = !is_exact<T> && exists ? window.row(window.y0)[window.x0] : T{0};
    const std::int64_t index = view.reference_of(pair);
    const auto* const record = static_cast<const MaskedReference<T>*>(references.records) + index;
    const std::uint32_t* bits = references.bits + index * h * references.row_words;

    Under under(tiling, first_shift, threads_of_part, shifts, shifts_x);
    for (int first = 0; first < h; first += tiling.band) {
      const int rows = min(tiling.band, h - first);
      stage_rows(window, origin, {dy + first, dx, rows + shifts_y - 1, w + shifts_x - 1}, tiling.pitch,
                 memory.running);
      for (int i = threadIdx.x; i < rows * references.row_words; i += threads)
        memory.bits[i] = bits[first * references.row_words + i];
      __syncthreads();
      if (is_exact<T> && rows == h && record->rectangle.x1 > 0) {  // sums of floats down a column would round
        sum_down(rows + shifts_y - 1, w + shifts_x - 1, tiling.pitch, memory.running);
        __syncthreads();
        if (part == 0) under.add_rectangle(memory, tiling.pitch, record->rectangle);
      } else {
        under.add_rows(memory, references.row_words, tiling.pitch, part, tiling.parts, rows);
      }
      __syncthreads();  // the next band or task overwrites the running sums
    }
    under.add_parts(tiling.parts, reinterpret_cast<typename Under::Sums*>(result.sums_by_thread));

    const MaskedReference<T> reference = *record;
#pragma unroll
    for (int k = 0; k < Under::count; ++k) {
      const int shift = first_shift + k * threads_of_part;
      if (part != 0 || shift >= shifts) break;
      const int column = shift % shifts_x, row = shift / shifts_x;
      const int sx = dx + column, sy = dy + row;
      const Rectangle& existing = reference.existing;
      const bool inside = sx + existing.x0 >= window.x0 && sx + existing.x1 <= window.x1 &&
                          sy + existing.y0 >= window.y0 && sy + existing.y1 <= window.y1;
      const std::int64_t place = (pair * view.ny + y + row) * view.nx + x + column;
      const float value = inside ? score<T>(criterion, reference.count, products[place], reference.moments,
                                            under.moments(k, reference.count, origin))
                                 : undefined;
      if (out.peaks)
        result.scores[shift] = value;
      else
        out.scores[place] = out.kind == ScoreKind::value ? value_of(value, criterion) : value;
    }
    if (!out.peaks) return;
    __syncthreads();
    find_peak(view, criterion, result.scores, view.nx, out.peaks + pair);
    __syncthreads();  // the next task overwrites the scores
  });
}

int most_shared_bytes() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device), "Reading the current device");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "Reading the size of shared memory");
  return bytes;
}

void launch_products(const NccJob& packed, void* out, Workspace& workspace, StreamHandle stream) {
  const NccDevice device{.shared_bytes = most_shared_bytes()};
  launch_ncc(plan_packed_sums(packed, device), packed, out, workspace, stream);
}

template <typename T, typename Sum>
MaskedTiling tiling_of(const NccJob& job) {
  using Value = RunningSum<T, Sum>;
  return MaskedTiling(job, sizeof(Value), most_shifts<Value>);
}

/// True if peaks need no surfaces in memory.
bool has_all_shifts(const NccJob& job) {
  bool has = false;
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    has = tiling_of<T, Sum>(job).has_all_shifts();
  });
  return has;
}

void launch_scoring(const NccJob& job, Criterion criterion, const MaskedOutput& out, Arena& arena,
                    Workspace& workspace, StreamHandle stream) {
  const MaskedReferences references = place_references(job, arena);
  void* const products = arena.take(job.outputs() * size_of(job.sums));
  const NccJob packed = with_masked_references(job, references, stream);
  launch_products(packed, products, workspace, stream);
  visit_types(packed, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    if constexpr (!std::is_same_v<Sum, float>) {  // scores of floats come from f64
      using Value = RunningSum<T, Sum>;
      const MaskedTiling tiling = tiling_of<T, Sum>(packed);
      const std::int64_t tasks = packed.pairs * tiling.across * tiling.down;
      const auto kernel =
          tiling.has_few_shifts() ? masked_scores<T, Sum, 1> : masked_scores<T, Sum, most_shifts<Value>>;
      kernel<<<grid_size(tasks, 1), threads, BandMemory<Value>::bytes(tiling, references.row_words),
               stream>>>(make_job_view(packed), references, tiling, criterion,
                         static_cast<const Sum*>(products), out);
    }
  });
  check_launch(describe("scores of masked references", job));
}

}  // namespace

std::string Masked::unsupported_reason(const NccJob& job) {
  bool fits = true;
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    if (job.shifts.count() > 0) fits = tiling_of<T, Sum>(job).band > 0;
  });
  return fits ? "" : "cuda-masked does references of up to about 2000 columns.";
}

std::size_t masked_workspace_bytes(const NccJob& job) {
  Arena arena(nullptr);
  place_references(job, arena);
  arena.take(job.outputs() * size_of(job.sums));
  if (!has_all_shifts(job)) {
    arena.take(job.outputs() * sizeof(float));
    arena.take(peaks_workspace_bytes(job));
  }
  return arena.used();
}

void launch_masked_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) {
  if (job.outputs() == 0) return;
  Arena arena(workspace.memory().reserve(masked_workspace_bytes(job)));
  launch_products(with_masked_references(job, place_references(job, arena), stream), out, workspace, stream);
}

void launch_masked_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                          Workspace& workspace, StreamHandle stream) {
  if (job.outputs() == 0) return;
  Arena arena(workspace.memory().reserve(masked_workspace_bytes(job)));
  launch_scoring(job, criterion, {.kind = kind, .scores = scores}, arena, workspace, stream);
}

void launch_masked_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                         StreamHandle stream) {
  if (job.outputs() == 0) return;
  Arena arena(workspace.memory().reserve(masked_workspace_bytes(job)));
  if (has_all_shifts(job)) return launch_scoring(job, criterion, {.peaks = peaks}, arena, workspace, stream);
  auto* const scores = arena.take<float>(job.outputs());
  void* const memory = arena.take(peaks_workspace_bytes(job));
  launch_scoring(job, criterion, {.scores = scores}, arena, workspace, stream);
  launch_peaks(job, criterion, scores, peaks, memory, stream);
}

void Masked::launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) {
  launch_masked_sums(job, out, workspace, stream);
}
void Masked::launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                           Workspace& workspace, StreamHandle stream) {
  launch_masked_scores(job, criterion, kind, scores, workspace, stream);
}
void Masked::launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                          StreamHandle stream) {
  launch_masked_peaks(job, criterion, peaks, workspace, stream);
}

}  // namespace dic::kernels
