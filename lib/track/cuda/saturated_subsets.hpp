#pragma once

#include "refine/cuda/saturated_refinement.hpp"
#include "track/cuda/image_access/image_access.hpp"

namespace dic::track::cuda {

/// Measures subsets of tracked points again without the pixels that are saturated in only one of both images.
class SaturatedSubsets {
 public:
  explicit SaturatedSubsets(const RefineOptions& options) : options_(options) {}

  /// Replaces the results of these tasks, whose refinement is queued. See refine::SaturatedRefinement::run.
  void run(ImageAccess& images, const ReferenceImage& reference, const DeviceFrame& current,
           const ReferenceSubsets& subsets, const kernels::RefineTasks& tasks, kernels::RefineResult* results,
           const kernels::Stream& stream);

 private:
  const RefineOptions options_;
  refine::SaturatedRefinement refinement_;
};

}  // namespace dic::track::cuda
