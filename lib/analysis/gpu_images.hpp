#pragma once

#include <dic/image.hpp>
#include <memory>
#include <vector>

#include "analysis/noise.hpp"

/// Analysis of images in the memory of a GPU, which need not be copied to the host. Defined by one file of
/// the build: cuda/gpu_images.cpp or cuda/gpu_images_stub.cpp.
namespace dic::analysis {

/// Waits for the default stream of the GPU that has the image, so that the image is complete.
void wait_for_default_stream(const ImageView& image);

/// Patches of an image, copied from a GPU to the host.
class GpuPatches {
 public:
  explicit GpuPatches(const std::vector<NoisePatch>& patches);
  ~GpuPatches();
  GpuPatches(const GpuPatches&) = delete;
  GpuPatches& operator=(const GpuPatches&) = delete;

  /// Copies the patches into one image, one below the other. One call at a time.
  Image copy(const ImageView& image);
  /// Positions of the patches in that image.
  const std::vector<NoisePatch>& in_copy() const { return in_copy_; }

 private:
  struct Memory;
  std::vector<NoisePatch> patches_, in_copy_;
  std::unique_ptr<Memory> memory_;
};

/// The low-pass of prefilter.hpp on a GPU.
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
