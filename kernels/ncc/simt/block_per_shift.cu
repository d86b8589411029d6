#include "ncc/job_view.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

constexpr int warps = 4;
constexpr int threads = warps * warp_size;

/// Sums one overlap per block: thread i takes the elements i, i + 128, ..; then the partial sums are added.
template <typename T, typename Sum>
__global__ void __launch_bounds__(threads)
    block_per_shift(const __grid_constant__ JobView view, std::int64_t outputs, Sum* out) {
  __shared__ Sum by_warp[warps];
  for_each_task(outputs, 1, 0, [&](std::int64_t task) {
    const auto [pair, dx, dy] = output_at(view, task);
    const auto reference = load_patch<T>(view.reference, view.reference_of(pair));
    const auto window = load_patch<T>(view.search, view.window_of(pair));
    const Overlap o = overlap(reference, window, dx, dy);
    const int width = o.width(), elements = width * o.height();
    Sum sum = 0;
    for (int i = threadIdx.x; i < elements; i += threads) {
      const int y = o.y0 + i / width, x = o.x0 + i % width;
      multiply_add(sum, reference.row(y)[x], window.row(y + dy)[x + dx]);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % warp_size == 0) by_warp[threadIdx.x / warp_size] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < warps; ++w) sum += by_warp[w];
      out[task] = sum;
    }
    __syncthreads();  // the next task writes by_warp again
  });
}

}  // namespace

void launch_block_per_shift(const NccJob& job, void* out, StreamHandle stream) {
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    block_per_shift<T, Sum><<<grid_size(job.outputs(), 1), threads, 0, stream>>>(
        make_job_view(job), job.outputs(), static_cast<Sum*>(out));
  });
}

}  // namespace dic::kernels
