#include "track/cuda/saturated_subsets.hpp"

#include <algorithm>

namespace dic::track::cuda {

void SaturatedSubsets::run(ImageAccess& images, const ReferenceImage& reference, const DeviceFrame& current,
                           const ReferenceSubsets& subsets, const kernels::RefineTasks& tasks,
                           kernels::RefineResult* results, const kernels::Stream& stream) {
  kernels::SaturatedFrame frame{.reference = reference.frame.saturated(),
                                .current = current.saturated(),
                                .roi = reference.roi,
                                .masks = {reference.planes.masks.words, options_.subset},
                                .subsets = subsets.prepared};
  if (!frame.reference.words && !frame.current.words) return;
  constexpr std::int64_t most_bytes = 64 << 20;  // of masks
  const std::int64_t mask_bytes = frame.masks.words_of() * std::int64_t{sizeof(std::uint32_t)};
  const std::int64_t at_once = std::clamp<std::int64_t>(most_bytes / mask_bytes, 1024, 1 << 17);
  const std::int64_t count = tasks.count_on_device ? fetched(tasks.count_on_device, stream) : tasks.max_count;
  for (std::int64_t first = 0; first < count; first += at_once) {
    frame.tasks = tasks.first + first;
    frame.results = results + first;
    frame.count = std::min(at_once, count - first);
    const kernels::SaturatedList list = list_of(frame.count);
    kernels::launch_list_saturated(frame, list, stream.handle());
    const std::int64_t n = fetched(list.count, stream);
    if (n == 0) continue;
    ReferenceImage without = reference;
    without.planes.masks = kernels::PixelMasks(list.masks, options_.subset);
    const ReferenceSubsets parts{subsets.x, subsets.y, n, list.subsets,
                                 matrices_.reserve<float>(n * kernels::matrix_floats(options_.order))};
    auto* again = results_.reserve<kernels::RefineResult>(n);
    const kernels::RefineTasks listed{.first = list.tasks, .max_count = n, .count_on_device = list.count};
    images.prepare_parts(without, parts, listed, stream);
    images.refine(without, current, parts, listed, again, stream, nullptr);
    kernels::launch_take_unsaturated(frame, list, n, again, stream.handle());
  }
}

/// Memory for so many measurements.
kernels::SaturatedList SaturatedSubsets::list_of(std::int64_t most) {
  return {subsets_.reserve<kernels::PreparedSubset>(most), tasks_.reserve<kernels::RefineTask>(most),
          of_task_.reserve<kernels::RepeatedTask>(most),
          masks_.reserve<std::uint32_t>(most * kernels::PixelMasks(nullptr, options_.subset).words_of()),
          count_.reserve<std::int32_t>(1)};
}

std::int32_t SaturatedSubsets::fetched(const std::int32_t* count, const kernels::Stream& stream) {
  auto* to = on_host_.reserve<std::int32_t>(1);
  kernels::launch_store_counts(count, 1, to, stream.handle());
  stream.synchronize("the measurement without saturated pixels");
  return *to;
}

}  // namespace dic::track::cuda
