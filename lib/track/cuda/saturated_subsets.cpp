#include "track/cuda/saturated_subsets.hpp"

namespace dic::track::cuda {

void SaturatedSubsets::run(ImageAccess& images, const ReferenceImage& reference, const DeviceFrame& current,
                           const ReferenceSubsets& subsets, const kernels::RefineTasks& tasks,
                           kernels::RefineResult* results, const kernels::Stream& stream) {
  const auto refine_parts = [&](const refine::UnsaturatedParts& parts) {
    ReferenceImage without = reference;
    without.planes.masks = parts.masks;
    const ReferenceSubsets prepared{subsets.x, subsets.y, parts.tasks.max_count, parts.prepared.subsets,
                                    parts.prepared.matrices};
    kernels::RefineTasks again = parts.tasks;
    again.are_parts = tasks.are_parts;
    images.prepare_parts(without, prepared, again, stream);
    images.refine(without, current, prepared, again, parts.results, stream, nullptr);
  };
  refinement_.run({.reference = reference.frame.saturated(),
                   .current = current.saturated(),
                   .roi = reference.roi,
                   .masks = {reference.planes.masks.words, options_.subset},
                   .subsets = subsets.prepared,
                   .tasks = tasks.first,
                   .results = results,
                   .count = tasks.max_count},
                  tasks.count_on_device, options_.order, refine_parts, stream);
}

}  // namespace dic::track::cuda
