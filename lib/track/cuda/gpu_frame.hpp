#pragma once

#include "track/cuda/gpu_context.hpp"

namespace dic::track::cuda {

/// The current frame and the active reference on one GPU.
struct GpuFrame {
  GpuContext& gpu;
  DeviceReference& reference;
  const DeviceFrame& current;

  /// Makes work that is queued from now on wait until both images are ready.
  void wait_ready() const {
    reference.frame().wait_ready(gpu.stream());
    current.wait_ready(gpu.stream());
  }
  /// Declares that the work queued so far is the last that reads the images.
  void release_images() const {
    reference.frame().release_after(gpu.stream());
    current.release_after(gpu.stream());
  }
};

}  // namespace dic::track::cuda
