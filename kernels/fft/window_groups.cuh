#pragma once

#include "common/host_device.hpp"
#include "ncc/frame.cuh"

namespace dic::kernels {

/// Pairs begin .. end - 1, counted from frame.first_pair.
struct PairRange {
  std::int64_t begin, end;
};

/// Groups of up to `size` windows that share their reference, over the references of a part of a batch.
struct WindowGroups {
  std::int64_t first_reference, references, per_reference;
  int size;

  WindowGroups(const Frame& frame, int group_size)
      : first_reference(frame.first_pair / frame.windows_per_reference),
        references((frame.first_pair + frame.pairs - 1) / frame.windows_per_reference - first_reference + 1),
        per_reference((frame.windows_per_reference + group_size - 1) / group_size),
        size(group_size) {}
  DIC_HOST_DEVICE std::int64_t count() const { return references * per_reference; }
  /// The pairs of a group that the part holds; none where it lies outside.
  __device__ PairRange pairs(const Frame& frame, std::int64_t group) const {
    const std::int64_t reference = first_reference + group / per_reference;
    const std::int64_t first_of_reference = reference * frame.windows_per_reference - frame.first_pair;
    const std::int64_t end_of_reference = first_of_reference + frame.windows_per_reference;
    const std::int64_t first = first_of_reference + group % per_reference * size;
    return {max(first, std::int64_t{0}), min(min(first + size, end_of_reference), frame.pairs)};
  }
};

}  // namespace dic::kernels
