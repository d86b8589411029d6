#include "ncc/variants.hpp"
#include "ncc/warp_shuffle.cuh"

namespace dic::kernels {
namespace {

constexpr int warps = 8;
constexpr int rows_per_task = 8;

/// The window moves (its elements wander through the lanes), the reference is broadcast: then no step is idle
/// in the valid form, where the reference is the smaller one.
template <typename T, typename Sum, bool whole_overlaps>
__global__ void __launch_bounds__(warps* warp_size, 2)
    warp_shuffle(const __grid_constant__ Frame frame, const __grid_constant__ RowTasks rows,
                 std::int64_t tasks, int tiles, Sum* out) {
  const int lane = threadIdx.x % warp_size;
  for_each_task(tasks, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    const auto tile = static_cast<int>(task % tiles);
    const std::int64_t pair = task / tiles / rows.count();
    const RowTask part = rows.task(task / tiles % rows.count());
    if (!whole_overlaps && part.begin >= part.end) return;

    const auto window = load_matrix<T>(frame.search, frame.window_of(pair));
    const Matrix<T> reference[1] = {load_matrix<T>(frame.reference, frame.reference_of(pair))};
    Sum sum[1] = {0};
    shuffle_rows(window, reference, frame.search.width, frame.reference.width,
                 frame.dx_min + tile * warp_size, frame.dy_min + part.shift, part.begin, part.end, lane, sum);
    const int column = tile * warp_size + lane;
    if (column >= frame.nx) return;
    Sum* target = out + (pair * frame.ny + part.shift) * frame.nx + column;
    if constexpr (whole_overlaps)
      *target = sum[0];
    else
      atomic_add(target, sum[0]);
  });
}

template <RowSplit split>
void launch(const NccJob& job, void* out, StreamHandle stream) {
  constexpr bool whole_overlaps = split == RowSplit::none;
  const Frame frame = make_frame(job);
  const RowTasks rows(split, rows_per_task, job.search.height, job.reference.height, frame.dy_min, frame.ny);
  const int tiles = (frame.nx + warp_size - 1) / warp_size;
  const std::int64_t tasks = frame.pairs * rows.count() * tiles;
  if (!whole_overlaps) fill(out, 0, job.outputs() * size_of(job.sums), stream);
  if (tasks == 0) return;  // no overlap anywhere
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    warp_shuffle<T, Sum, whole_overlaps><<<grid_size(tasks, warps), warps * warp_size, 0, stream>>>(
        frame, rows, tasks, tiles, static_cast<Sum*>(out));
  });
}

}  // namespace

void launch_warp_shuffle(const NccJob& job, void* out, StreamHandle stream) {
  launch<RowSplit::none>(job, out, stream);
}
void launch_warp_shuffle_rectangle(const NccJob& job, void* out, StreamHandle stream) {
  launch<RowSplit::rectangle>(job, out, stream);
}
void launch_warp_shuffle_triangle(const NccJob& job, void* out, StreamHandle stream) {
  launch<RowSplit::triangle>(job, out, stream);
}

}  // namespace dic::kernels
