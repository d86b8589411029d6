#pragma once

#include <cstdint>
#include <dic/kernels/saturated.hpp>
#include <functional>

namespace dic::refine {

/// Subsets without their saturated pixels, to be prepared and refined; device memory.
struct UnsaturatedParts {
  kernels::PreparedSubsets prepared;  ///< to be prepared
  kernels::RefineTasks tasks;
  kernels::PixelMasks masks;
  kernels::RefineResult* results;  ///< [tasks.max_count], to be filled in
};

/// Measures subsets again without the pixels that are saturated in only one of both images, by the rules of
/// the CPU's refinement (<dic/shared/saturation.hpp>).
class SaturatedRefinement {
 public:
  /// Queues preparing and refining parts.
  using RefineParts = std::function<void(const UnsaturatedParts& parts)>;

  /// Replaces results of finished refinements. Does nothing if neither image has saturated pixels, else waits
  /// for the stream. frame: frame.count is ignored if there is `count_on_device`, in device memory.
  void run(kernels::SaturatedFrame frame, const std::int32_t* count_on_device, int order,
           const RefineParts& refine_parts, const kernels::Stream& stream);

 private:
  kernels::SaturatedList list_of(std::int64_t most, std::int64_t mask_words);
  std::int32_t fetched(const std::int32_t* count, const kernels::Stream& stream);

  kernels::DeviceBuffer subsets_, matrices_, tasks_, of_task_, masks_, count_, results_;
  kernels::PinnedBuffer on_host_;
};

}  // namespace dic::refine
