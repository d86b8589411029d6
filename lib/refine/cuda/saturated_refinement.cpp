#include "refine/cuda/saturated_refinement.hpp"

#include <algorithm>
#include <dic/kernels/points.hpp>

namespace dic::refine {

void SaturatedRefinement::run(kernels::SaturatedFrame frame, const std::int32_t* count_on_device, int order,
                              const RefineParts& refine_parts, const kernels::Stream& stream) {
  if (!frame.reference.words && !frame.current.words) return;
  constexpr std::int64_t most_bytes = 64 << 20;  // memory for masks
  const std::int64_t mask_words = frame.masks.words_of();
  const std::int64_t mask_bytes = mask_words * std::int64_t{sizeof(std::uint32_t)};
  const std::int64_t at_once = std::clamp<std::int64_t>(most_bytes / mask_bytes, 1024, 1 << 17);
  const std::int64_t count = count_on_device ? fetched(count_on_device, stream) : frame.count;
  const kernels::RefineTask* const tasks = frame.tasks;
  kernels::RefineResult* const results = frame.results;
  for (std::int64_t first = 0; first < count; first += at_once) {
    frame.tasks = tasks + first;
    frame.results = results + first;
    frame.count = std::min(at_once, count - first);
    const kernels::SaturatedList list = list_of(frame.count, mask_words);
    kernels::launch_list_saturated(frame, list, stream.handle());
    const std::int64_t n = fetched(list.count, stream);
    if (n == 0) continue;
    kernels::PixelMasks masks = frame.masks;
    masks.words = list.masks;
    const UnsaturatedParts parts{{list.subsets, matrices_.reserve<float>(n * kernels::matrix_floats(order))},
                                 {.first = list.tasks, .max_count = n, .count_on_device = list.count},
                                 masks,
                                 results_.reserve<kernels::RefineResult>(n)};
    refine_parts(parts);
    kernels::launch_take_unsaturated(frame, list, n, parts.results, stream.handle());
  }
}

/// Memory for a number of measurements.
kernels::SaturatedList SaturatedRefinement::list_of(std::int64_t most, std::int64_t mask_words) {
  return {subsets_.reserve<kernels::PreparedSubset>(most), tasks_.reserve<kernels::RefineTask>(most),
          of_task_.reserve<kernels::RepeatedTask>(most), masks_.reserve<std::uint32_t>(most * mask_words),
          count_.reserve<std::int32_t>(1)};
}

std::int32_t SaturatedRefinement::fetched(const std::int32_t* count, const kernels::Stream& stream) {
  auto* to = on_host_.reserve<std::int32_t>(1);
  kernels::launch_store_counts(count, 1, to, stream.handle());
  stream.synchronize("the measurement without saturated pixels");
  return *to;
}

}  // namespace dic::refine
