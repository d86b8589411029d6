#pragma once

#include <dic/kernels/saturated.hpp>

#include "track/cuda/image_access/image_access.hpp"

namespace dic::track::cuda {

/// Measures points again without the pixels that are saturated in one of both images alone, as the CPU's
/// refinement does. Where neither image has saturated pixels, nothing happens.
class SaturatedSubsets {
 public:
  explicit SaturatedSubsets(const RefineOptions& options) : options_(options) {}

  /// After the refinement of these tasks, whose results are replaced. Waits for the stream where there are
  /// saturated pixels.
  void run(ImageAccess& images, const ReferenceImage& reference, const DeviceFrame& current,
           const ReferenceSubsets& subsets, const kernels::RefineTasks& tasks, kernels::RefineResult* results,
           const kernels::Stream& stream);

 private:
  kernels::SaturatedList list_of(std::int64_t most);
  std::int32_t fetched(const std::int32_t* count, const kernels::Stream& stream);

  const RefineOptions options_;
  kernels::DeviceBuffer subsets_, matrices_, tasks_, of_task_, masks_, count_, results_;
  kernels::PinnedBuffer on_host_;
};

}  // namespace dic::track::cuda
