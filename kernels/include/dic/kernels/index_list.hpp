#pragma once

#include <cstdint>

namespace dic::kernels {

/// Some points or entries by their numbers, in device memory; the host knows how many.
struct IndexList {
  const std::int32_t* numbers = nullptr;
  std::int64_t count = 0;
};

}  // namespace dic::kernels
