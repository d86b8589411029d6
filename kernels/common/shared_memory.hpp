#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "common/check.hpp"

namespace dic::kernels {

/// Allows launches of a kernel with `bytes` of dynamic shared memory, also beyond the default limit. The
/// limit belongs to the kernel, and other threads launch it with other sizes, so that it is always set to the
/// maximum of the device. `what` names the work in error messages.
template <typename Kernel>
void allow_shared_memory(Kernel* kernel, std::size_t bytes, const std::string& what) {
  constexpr std::size_t always_allowed = 40 << 10;  // default limit: 48 KB with static shared memory
  if (bytes <= always_allowed) return;
  int device = 0, most = 0;
  cudaFuncAttributes attributes{};
  check(cudaGetDevice(&device), what);
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), what);
  check(cudaFuncGetAttributes(&attributes, kernel), what);
  const int free = most - static_cast<int>(attributes.sharedSizeBytes);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, free), what);
}

}  // namespace dic::kernels
