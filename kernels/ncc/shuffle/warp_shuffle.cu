#include "ncc/shuffle/variants.hpp"
#include "ncc/shuffle/warp_shuffle.cuh"

namespace dic::kernels {
namespace {

constexpr int warps = 8;

/// Correlates with a window that moves through the lanes and a reference that is broadcast: no step is then
/// idle in the valid form, in which the reference is the smaller patch.
template <typename T, typename Sum, typename Tasks>
__global__ void __launch_bounds__(warps* warp_size, 2)
    warp_shuffle(const __grid_constant__ JobView view, const __grid_constant__ Tasks rows, std::int64_t tasks,
                 int strips, Sum* out) {
  constexpr bool whole_overlaps = std::is_same_v<Tasks, OverlapTasks>;
  const int lane = threadIdx.x % warp_size;
  for_each_task(tasks, warps, warp_index(), [&](std::int64_t task) {
    const auto strip = static_cast<int>(task % strips);
    const std::int64_t pair = task / strips / rows.count();
    const RowTask part = rows.task(task / strips % rows.count());
    if (!whole_overlaps && part.begin >= part.end) return;

    const auto window = load_patch<T>(view.search, view.window_of(pair));
    const auto reference = load_patch<T>(view.reference, view.reference_of(pair));
    TileSums<ShuffleTile, Sum> sums = {};
    shuffle_rows<ShuffleTile, T, Sum>(&window, &reference,
                                      {.moving_width = view.search.width,
                                       .fixed_width = view.reference.width,
                                       .sx = view.dx_min + strip * warp_size,
                                       .sy = view.dy_min + part.shift,
                                       .begin = part.begin,
                                       .end = part.end},
                                      lane, sums);
    const int column = strip * warp_size + lane;
    if (column >= view.nx) return;
    Sum* target = out + (pair * view.ny + part.shift) * view.nx + column;
    if constexpr (whole_overlaps)
      *target = sums[0][0][0];
    else
      atomic_add(target, sums[0][0][0]);
  });
}

int strips_of(const NccJob& job) { return (job.shifts.nx() + warp_size - 1) / warp_size; }

template <typename Tasks>
void launch(const NccJob& job, const Tasks& rows, void* out, StreamHandle stream) {
  const int strips = strips_of(job);
  const std::int64_t tasks = job.pairs * rows.count() * strips;
  if (tasks == 0) return;  // no overlap anywhere
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    warp_shuffle<T, Sum><<<grid_size(tasks, warps), warps * warp_size, 0, stream>>>(
        make_job_view(job), rows, tasks, strips, static_cast<Sum*>(out));
  });
}

void launch_split(RowSplit split, const NccJob& job, void* out, StreamHandle stream) {
  const int moving_h = job.search.height, fixed_h = job.reference.height;
  const std::int64_t overlaps = job.pairs * strips_of(job) * job.shifts.ny();
  const RowTasks rows(split, rows_to_fill_gpu(overlaps, moving_h, fixed_h), moving_h, fixed_h,
                      job.shifts.dy_min, job.shifts.ny());
  fill(out, 0, job.outputs() * size_of(job.sums), stream);
  launch(job, rows, out, stream);
}

}  // namespace

void launch_warp_shuffle(const NccJob& job, void* out, StreamHandle stream) {
  launch(job,
         OverlapTasks(job.search.height, job.reference.height, job.shifts.dy_min, job.shifts.ny(),
                      ShuffleTile::shifts),
         out, stream);
}
void launch_warp_shuffle_rectangle(const NccJob& job, void* out, StreamHandle stream) {
  launch_split(RowSplit::rectangle, job, out, stream);
}
void launch_warp_shuffle_triangle(const NccJob& job, void* out, StreamHandle stream) {
  launch_split(RowSplit::triangle, job, out, stream);
}

}  // namespace dic::kernels
