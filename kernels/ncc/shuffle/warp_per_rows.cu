#include "common/row_tasks.hpp"
#include "ncc/shuffle/variants.hpp"
#include "ncc/simt/warp_overlap.cuh"

// cuda-warp-per-shift with the rows of an overlap divided among several warps.
namespace dic::kernels {
namespace {

constexpr int warps = warps_per_shift_block;

/// Sums a group of rows of an overlap per warp.
template <typename T, typename Sum>
__global__ void __launch_bounds__(warps* warp_size)
    warp_per_rows(const __grid_constant__ JobView view, const __grid_constant__ RowTasks rows,
                  std::int64_t tasks, Sum* out) {
  const int lane = threadIdx.x % warp_size;
  for_each_task(tasks, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    const auto column = static_cast<int>(task % view.nx);
    const RowTask part = rows.task(task / view.nx % rows.count());
    if (part.begin >= part.end) return;
    const std::int64_t pair = task / view.nx / rows.count();
    const auto reference = load_patch<T>(view.reference, view.reference_of(pair));
    const auto window = load_patch<T>(view.search, view.window_of(pair));
    const int dx = view.dx_min + column, dy = view.dy_min + part.shift;
    Overlap o = overlap(reference, window, dx, dy);
    o.y0 = max(o.y0, part.begin);
    o.y1 = min(o.y1, part.end);
    const Sum sum = sum_overlap<T, Sum, Indexing::linear>(reference, window, o, dx, dy, lane);
    if (lane == 0) atomic_add(out + (pair * view.ny + part.shift) * view.nx + column, sum);
  });
}

void launch_split(RowSplit split, const NccJob& job, void* out, StreamHandle stream) {
  const int moving_h = job.search.height, fixed_h = job.reference.height;
  const RowTasks rows(split, rows_to_fill_gpu(job.outputs(), moving_h, fixed_h), moving_h, fixed_h,
                      job.shifts.dy_min, job.shifts.ny());
  const std::int64_t tasks = job.pairs * rows.count() * job.shifts.nx();
  fill(out, 0, job.outputs() * size_of(job.sums), stream);
  if (tasks == 0) return;  // no overlap anywhere
  ImageTypes::visit(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    warp_per_rows<T, Sum><<<grid_size(tasks, warps), warps * warp_size, 0, stream>>>(
        make_job_view(job), rows, tasks, static_cast<Sum*>(out));
  });
}

}  // namespace

void launch_warp_per_shift_rectangle(const NccJob& job, void* out, StreamHandle stream) {
  launch_split(RowSplit::rectangle, job, out, stream);
}
void launch_warp_per_shift_triangle(const NccJob& job, void* out, StreamHandle stream) {
  launch_split(RowSplit::triangle, job, out, stream);
}

}  // namespace dic::kernels
