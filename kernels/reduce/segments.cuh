#pragma once

#include <algorithm>
#include <dic/kernels/reduce.hpp>

#include "common/launch.cuh"

namespace dic::kernels {

/// Division of segments into equal parts (of less than 2^31 elements), one per block. It depends on the
/// length of the segments alone, so that floats are added in the same order on every device.
struct Parts {
  int count;
  std::int64_t size;

  Parts(std::int64_t length, std::int64_t least_size, int most)
      : count(static_cast<int>(std::clamp<std::int64_t>(length / least_size, 1, most))),
        size((length + count - 1) / count) {}
  /// Elements [begin, end) of part `index`.
  __device__ std::int64_t begin(int index, std::int64_t length) const { return min(index * size, length); }
  __device__ std::int64_t end(int index, std::int64_t length) const { return begin(index + 1, length); }
};

}  // namespace dic::kernels
