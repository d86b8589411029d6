#pragma once

#include "ncc/scoring.cuh"

namespace dic::kernels {

/// Stores the peak of a pair's scores, which a block has packed in shared memory.
__device__ inline void find_peak(const Frame& frame, Measure measure, const float* surface, Peak* out) {
  const auto search = [&](auto&& wanted) {
    Best best = Best::none();
    for (int i = threadIdx.x; i < frame.nx * frame.ny; i += blockDim.x)
      if (surface[i] > best.score && wanted(i)) best = {surface[i], i};
    return best_of_block(best);
  };
  const Best best = search([](int) { return true; });
  const Best second = search([&](int i) { return best.index >= 0 && is_far(i, best.index, frame.nx); });
  if (threadIdx.x < warp_size) store_peak(frame, measure, surface, frame.nx, best, second, out);
}

}  // namespace dic::kernels
