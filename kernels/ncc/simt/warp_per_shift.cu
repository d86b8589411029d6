#include "common/row_tasks.hpp"
#include "ncc/frame.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

constexpr int warps = 8;

/// How a warp walks through an overlap.
enum class Indexing {
  linear,  ///< lanes take consecutive elements across row ends: no idle lane, but a division per element
  by_row   ///< lanes take consecutive elements of one row: no division, idle lanes at the row's end
};

template <typename T, typename Sum, Indexing indexing>
__device__ Sum sum_overlap(const Matrix<T>& reference, const Matrix<T>& window, const Overlap& o, int dx,
                           int dy, int lane) {
  Sum sum = 0;
  if constexpr (indexing == Indexing::linear) {
    const int width = o.width(), elements = width * o.height();
    for (int i = lane; i < elements; i += warp_size) {
      const int y = o.y0 + i / width, x = o.x0 + i % width;
      multiply_add(sum, reference.row(y)[x], window.row(y + dy)[x + dx]);
    }
  } else {
    for (int y = o.y0; y < o.y1; ++y) {
      const T* a = reference.row(y);
      const T* b = window.row(y + dy);
      for (int x = o.x0 + lane; x < o.x1; x += warp_size) multiply_add(sum, a[x], b[x + dx]);
    }
  }
  return warp_sum(sum);
}

/// A warp sums one overlap.
template <typename T, typename Sum, Indexing indexing>
__global__ void __launch_bounds__(warps* warp_size)
    warp_per_shift(const __grid_constant__ Frame frame, std::int64_t outputs, Sum* out) {
  const int lane = threadIdx.x % warp_size;
  for_each_task(outputs, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    const auto [pair, dx, dy] = output_at(frame, task);
    const auto reference = load_matrix<T>(frame.reference, frame.reference_of(pair));
    const auto window = load_matrix<T>(frame.search, frame.window_of(pair));
    const Overlap o = overlap(reference, window, dx, dy);
    const Sum sum = sum_overlap<T, Sum, indexing>(reference, window, o, dx, dy, lane);
    if (lane == 0) out[task] = sum;
  });
}

template <Indexing indexing>
void launch(const NccJob& job, void* out, StreamHandle stream) {
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    warp_per_shift<T, Sum, indexing><<<grid_size(job.outputs(), warps), warps * warp_size, 0, stream>>>(
        make_frame(job), job.outputs(), static_cast<Sum*>(out));
  });
}

/// A warp sums a group of rows of an overlap.
template <typename T, typename Sum>
__global__ void __launch_bounds__(warps* warp_size)
    warp_per_rows(const __grid_constant__ Frame frame, const __grid_constant__ RowTasks rows,
                  std::int64_t tasks, Sum* out) {
  const int lane = threadIdx.x % warp_size;
  for_each_task(tasks, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    const auto column = static_cast<int>(task % frame.nx);
    const RowTask part = rows.task(task / frame.nx % rows.count());
    if (part.begin >= part.end) return;
    const std::int64_t pair = task / frame.nx / rows.count();
    const auto reference = load_matrix<T>(frame.reference, frame.reference_of(pair));
    const auto window = load_matrix<T>(frame.search, frame.window_of(pair));
    const int dx = frame.dx_min + column, dy = frame.dy_min + part.shift;
    Overlap o = overlap(reference, window, dx, dy);
    o.y0 = max(o.y0, part.begin);
    o.y1 = min(o.y1, part.end);
    const Sum sum = sum_overlap<T, Sum, Indexing::linear>(reference, window, o, dx, dy, lane);
    if (lane == 0) atomic_add(out + (pair * frame.ny + part.shift) * frame.nx + column, sum);
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
        make_frame(job), rows, tasks, static_cast<Sum*>(out));
  });
}

}  // namespace

void launch_warp_per_shift(const NccJob& job, void* out, StreamHandle stream) {
  launch<Indexing::linear>(job, out, stream);
}
void launch_warp_per_shift_simple(const NccJob& job, void* out, StreamHandle stream) {
  launch<Indexing::by_row>(job, out, stream);
}
void launch_warp_per_shift_rectangle(const NccJob& job, void* out, StreamHandle stream) {
  launch_split(RowSplit::rectangle, job, out, stream);
}
void launch_warp_per_shift_triangle(const NccJob& job, void* out, StreamHandle stream) {
  launch_split(RowSplit::triangle, job, out, stream);
}

}  // namespace dic::kernels
