#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "common/check.hpp"

namespace dic::kernels {

/// Lets a kernel be launched with `bytes` of dynamic shared memory, where that is more than every kernel has.
/// The limit belongs to the kernel, not to the launch, and other threads launch it with other sizes: so it is
/// always set to all that the device has. `what` names the work in the message of an error.
template <typename Kernel>
void allow_shared_memory(Kernel* kernel, std::size_t bytes, const std::string& what) {
  constexpr std::size_t always_allowed = 40 << 10;  // 48 KB with what the kernel declares
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
