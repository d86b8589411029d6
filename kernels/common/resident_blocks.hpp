#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "common/shared_memory.hpp"

namespace dic::kernels {

/// Number of blocks of a kernel that the current device runs at the same time. Cached, since asking CUDA
/// takes longer than a launch.
template <typename Kernel>
std::int64_t resident_blocks(Kernel* kernel, int threads, int shared_bytes) {
  static std::mutex mutex;
  static std::map<std::tuple<Kernel*, int, int, int>, std::int64_t> known;
  int device = 0, multiprocessors = 0, per_multiprocessor = 0;
  const char* const what = "Asking how many blocks run at once";
  check(cudaGetDevice(&device), what);
  allow_shared_memory(kernel, shared_bytes, what);
  const std::lock_guard lock(mutex);
  std::int64_t& blocks = known[{kernel, device, threads, shared_bytes}];
  if (blocks == 0) {
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), what);
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, threads, shared_bytes),
          what);
    blocks = std::int64_t{multiprocessors} * std::max(per_multiprocessor, 1);
  }
  return blocks;
}

}  // namespace dic::kernels
