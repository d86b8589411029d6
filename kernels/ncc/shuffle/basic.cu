#include "ncc/job_view.cuh"
#include "ncc/shuffle/variants.hpp"

namespace dic::kernels {
namespace {

constexpr int threads = 256;

template <typename T, typename Sum>
__global__ void __launch_bounds__(threads)
    basic(const __grid_constant__ JobView view, std::int64_t outputs, Sum* out) {
  for_each_task(outputs, threads, threadIdx.x, [&](std::int64_t task) {
    const auto [pair, dx, dy] = output_at(view, task);
    const auto reference = load_patch<T>(view.reference, view.reference_of(pair));
    const auto window = load_patch<T>(view.search, view.window_of(pair));
    const Overlap o = overlap(reference, window, dx, dy);
    Sum sum = 0;
    for (int y = o.y0; y < o.y1; ++y) {
      const T* a = reference.row(y);
      const T* b = window.row(y + dy);
      for (int x = o.x0; x < o.x1; ++x) multiply_add(sum, a[x], b[x + dx]);
    }
    out[task] = sum;
  });
}

}  // namespace

void launch_basic(const NccJob& job, void* out, StreamHandle stream) {
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    basic<T, Sum><<<grid_size(job.outputs(), threads), threads, 0, stream>>>(
        make_job_view(job), job.outputs(), static_cast<Sum*>(out));
  });
}

}  // namespace dic::kernels
