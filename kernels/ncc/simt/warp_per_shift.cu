#include "ncc/simt/warp_overlap.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

constexpr int warps = warps_per_shift_block;

/// Sums one overlap per warp.
template <typename T, typename Sum, Indexing indexing>
__global__ void __launch_bounds__(warps* warp_size)
    warp_per_shift(const __grid_constant__ JobView view, std::int64_t outputs, Sum* out) {
  const int lane = threadIdx.x % warp_size;
  for_each_task(outputs, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    const auto [pair, dx, dy] = output_at(view, task);
    const auto reference = load_patch<T>(view.reference, view.reference_of(pair));
    const auto window = load_patch<T>(view.search, view.window_of(pair));
    const Overlap o = overlap(reference, window, dx, dy);
    const Sum sum = sum_overlap<T, Sum, indexing>(reference, window, o, dx, dy, lane);
    if (lane == 0) out[task] = sum;
  });
}

template <Indexing indexing>
void launch(const NccJob& job, void* out, StreamHandle stream) {
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    warp_per_shift<T, Sum, indexing><<<grid_size(job.outputs(), warps), warps * warp_size, 0, stream>>>(
        make_job_view(job), job.outputs(), static_cast<Sum*>(out));
  });
}

}  // namespace

void launch_warp_per_shift(const NccJob& job, void* out, StreamHandle stream) {
  launch<Indexing::linear>(job, out, stream);
}
void launch_warp_per_shift_simple(const NccJob& job, void* out, StreamHandle stream) {
  launch<Indexing::by_row>(job, out, stream);
}

}  // namespace dic::kernels
