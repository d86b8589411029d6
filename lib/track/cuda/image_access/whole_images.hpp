#pragma once

#include "track/cuda/image_access/image_access.hpp"

namespace dic::track::cuda {

/// Images that the memory of the GPU holds as a whole. Nothing waits for the device.
class WholeImages final : public ImageAccess {
 public:
  explicit WholeImages(const RefineOptions& options) : options_(options) {}

  void prepare(ReferenceImage& reference, PlanesMemory& memory, const ReferenceSubsets& subsets,
               const kernels::Stream& stream) override;
  void prepare_parts(const ReferenceImage& reference, const ReferenceSubsets& parts,
                     const kernels::RefineTasks& tasks, const kernels::Stream& stream) override;
  bool follows(const SubsetSearch& search, const ImageView& image, int size, int range) const override {
    return search.follows(image, size, range);
  }
  bool parallel_streams() const override { return true; }
  std::string find_peaks(SubsetSearch& search, const ReferenceImage& reference, const DeviceFrame& current,
                         const kernels::SearchWindows& windows, bool clipped, Peak* peaks,
                         const kernels::Stream& stream) override;
  void refine(const ReferenceImage& reference, const DeviceFrame& current, const ReferenceSubsets& subsets,
              const kernels::RefineTasks& tasks, kernels::RefineResult* results,
              const kernels::Stream& stream, kernels::Event* most_done) override;
  PyramidSource pyramid_source(const DeviceFrame& frame, const kernels::Stream& stream) override;
  ImageView on_host(const DeviceFrame& frame, std::vector<std::byte>& memory,
                    const kernels::Stream& stream) override;

 private:
  const RefineOptions options_;
};

}  // namespace dic::track::cuda
