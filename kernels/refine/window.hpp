#pragma once

#include <dic/shared/host_device.hpp>
#include <dic/shared/subset_window.hpp>

namespace dic::kernels {

/// Weights of a subset's pixels by their position.
struct Window {
  float exponent = 0;  ///< exponent of 2 per squared px from the centre; 0: all weights are 1

  Window() = default;
  Window(SubsetWeights weights, int subset) {
    if (weights == SubsetWeights::uniform) return;
    const double sd = kWindowSd * subset;
    exponent = static_cast<float>(-0.5 / (sd * sd) * 1.4426950408889634);  // log2(e)
  }

  DIC_HOST_DEVICE bool uniform() const { return exponent == 0; }
#ifdef __CUDACC__
  __device__ float weight(float i, float j) const {
    return uniform() ? 1.0f : exp2f(exponent * (i * i + j * j));
  }
#endif
};

}  // namespace dic::kernels
