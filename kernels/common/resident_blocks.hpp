#pragma once

#include <algorithm>
#include <cstdint>

#include "common/shared_memory.hpp"

namespace dic::kernels {

/// Blocks of a kernel that the current device runs at once.
template <typename Kernel>
std::int64_t resident_blocks(Kernel* kernel, int threads, int shared_bytes) {
  int device = 0, multiprocessors = 0, blocks = 0;
  const char* const what = "Asking how many blocks run at once";
  check(cudaGetDevice(&device), what);
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), what);
  allow_shared_memory(kernel, shared_bytes, what);
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes), what);
  return std::int64_t{multiprocessors} * std::max(blocks, 1);
}

}  // namespace dic::kernels
