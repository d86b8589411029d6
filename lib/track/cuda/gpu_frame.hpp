#pragma once

#include "track/cuda/gpu_context.hpp"

namespace dic::track::cuda {

/// What one GPU measures: the current frame against the active reference.
struct GpuFrame {
  GpuContext& gpu;
  DeviceReference& reference;
  const DeviceFrame& current;

  /// Queued work of the GPU waits from now on until both images are ready.
  void wait_ready() const {
    reference.frame().wait_ready(gpu.stream());
    current.wait_ready(gpu.stream());
  }
  /// The work that is queued by now is the last that reads the images.
  void release_images() const {
    reference.frame().release_after(gpu.stream());
    current.release_after(gpu.stream());
  }
};

}  // namespace dic::track::cuda
