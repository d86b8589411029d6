#pragma once

#include <dic/image.hpp>
#include <memory>
#include <vector>

#include "analysis/noise.hpp"

/// Images in the memory of a GPU, used there: what a caller has on the GPU does not go through the host.
/// Defined by exactly one file of the build: cuda/gpu_images.cpp or cuda/backend_cuda_stub.cpp.
namespace dic::analysis {

/// Waits for what was queued in the default stream of the GPU that has the image: who wrote it has ended.
void wait_for_default_stream(const ImageView& image);

/// Some places of an image, copied to the host.
class GpuPatches {
 public:
  explicit GpuPatches(const std::vector<NoisePatch>& patches);
  ~GpuPatches();
  GpuPatches(const GpuPatches&) = delete;
  GpuPatches& operator=(const GpuPatches&) = delete;

  /// One below the other. One call at a time.
  Image copy(const ImageView& image);
  /// Where they are in that.
  const std::vector<NoisePatch>& in_copy() const { return in_copy_; }

 private:
  struct Memory;
  std::vector<NoisePatch> patches_, in_copy_;
  std::unique_ptr<Memory> memory_;
};

/// The low-pass of prefilter.hpp.
class GpuLowPass {
 public:
  explicit GpuLowPass(double sigma);
  ~GpuLowPass();
  GpuLowPass(const GpuLowPass&) = delete;
  GpuLowPass& operator=(const GpuLowPass&) = delete;

  bool takes(ScalarType type) const;
  /// The filtered image, f32, in the memory of the same GPU until the next call. One call at a time.
  ImageView operator()(const ImageView& image);

 private:
  struct Memory;
  std::vector<float> taps_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace dic::analysis
