#include "ncc/variants.hpp"
#include "ncc/warp_shuffle.cuh"

namespace dic::kernels {
namespace {

constexpr int warps = 8;
constexpr int rows_per_task = 8;

/// Groups of up to `size` windows that share their reference, over the references of a part of a batch. A
/// group may stick out of the part at both ends.
struct WindowGroups {
  std::int64_t first_reference, references, per_reference;
  int size;

  WindowGroups(const Frame& frame, int group_size)
      : first_reference(frame.first_pair / frame.windows_per_reference),
        references((frame.first_pair + frame.pairs - 1) / frame.windows_per_reference - first_reference + 1),
        per_reference((frame.windows_per_reference + group_size - 1) / group_size),
        size(group_size) {}
  std::int64_t count() const { return references * per_reference; }
  /// First pair of a group, counted from frame.first_pair.
  __device__ std::int64_t first_pair(const Frame& frame, std::int64_t group) const {
    return (first_reference + group / per_reference) * frame.windows_per_reference +
           group % per_reference * size - frame.first_pair;
  }
  __device__ bool holds(const Frame& frame, std::int64_t first, int k) const {
    const std::int64_t pair = first + k;
    return pair >= 0 && pair < frame.pairs &&
           (frame.first_pair + pair) / frame.windows_per_reference ==
               (frame.first_pair + first) / frame.windows_per_reference;
  }
};

/// The reference moves and `count` windows are broadcast, so that the ring's two shuffles serve all of them.
/// Lane l of tile t has the shift dx = dx_max - 32 t - l: displacing the reference by s is displacing the
/// window by -s.
template <typename T, typename Sum, int count, bool whole_overlaps>
__global__ void __launch_bounds__(warps* warp_size, 2)
    multimat_right(const __grid_constant__ Frame frame, const __grid_constant__ RowTasks rows,
                   const __grid_constant__ WindowGroups groups, std::int64_t tasks, int tiles, Sum* out) {
  const int lane = threadIdx.x % warp_size;
  for_each_task(tasks, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    const auto tile = static_cast<int>(task % tiles);
    const RowTask part = rows.task(task / tiles % rows.count());
    const std::int64_t first = groups.first_pair(frame, task / tiles / rows.count());
    if (!whole_overlaps && part.begin >= part.end) return;

    // The windows' descriptions would take half of the registers: they wait in shared memory.
    __shared__ Matrix<T> of_warp[warps][count];
    Matrix<T>* windows = of_warp[threadIdx.x / warp_size];
    const bool mine = lane < count && groups.holds(frame, first, lane);
    __syncwarp();
    if (lane < count)
      windows[lane] = mine ? load_matrix<T>(frame.search, frame.window_of(first + lane)) : Matrix<T>{};
    __syncwarp();
    const unsigned active = __ballot_sync(0xffffffffu, mine);
    if (active == 0) return;
    const auto reference = load_matrix<T>(frame.reference, frame.reference_of(first + __ffs(active) - 1));
    Sum sums[count] = {};
    const int dx = frame.dx_min + frame.nx - 1 - tile * warp_size;
    const int dy = frame.dy_min + frame.ny - 1 - part.shift;
    shuffle_rows(reference, windows, frame.reference.width, frame.search.width, -dx, -dy, part.begin,
                 part.end, lane, sums);
    const int column = dx - lane - frame.dx_min;
    if (column < 0) return;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      if ((active >> k & 1) == 0) continue;
      Sum* target = out + ((first + k) * frame.ny + dy - frame.dy_min) * frame.nx + column;
      if constexpr (whole_overlaps)
        *target = sums[k];
      else
        atomic_add(target, sums[k]);
    }
  });
}

template <int count, bool whole_overlaps>
void launch_groups(const NccJob& job, const Frame& frame, const RowTasks& rows, void* out,
                   StreamHandle stream) {
  const WindowGroups groups(frame, count);
  const int tiles = (frame.nx + warp_size - 1) / warp_size;
  const std::int64_t tasks = groups.count() * rows.count() * tiles;
  if (tasks == 0) return;  // no overlap anywhere
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    multimat_right<T, Sum, count, whole_overlaps><<<grid_size(tasks, warps), warps * warp_size, 0, stream>>>(
        frame, rows, groups, tasks, tiles, static_cast<Sum*>(out));
  });
}

template <RowSplit split>
void launch(const NccJob& job, void* out, StreamHandle stream) {
  constexpr bool whole_overlaps = split == RowSplit::none;
  const Frame frame = make_frame(job);
  const RowTasks rows(split, rows_per_task, job.reference.height, job.search.height, -job.shifts.dy_max,
                      frame.ny);
  if (!whole_overlaps) fill(out, 0, job.outputs() * size_of(job.sums), stream);
  if (frame.windows_per_reference > 4)
    launch_groups<8, whole_overlaps>(job, frame, rows, out, stream);
  else
    launch_groups<4, whole_overlaps>(job, frame, rows, out, stream);
}

}  // namespace

void launch_multimat_right(const NccJob& job, void* out, StreamHandle stream) {
  launch<RowSplit::none>(job, out, stream);
}
void launch_multimat_right_triangle(const NccJob& job, void* out, StreamHandle stream) {
  launch<RowSplit::triangle>(job, out, stream);
}

}  // namespace dic::kernels
