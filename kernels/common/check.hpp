#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace dic::kernels {

/// Throws DeviceError "<what> failed on cuda:N (model): <CUDA's reason>. ..." unless `code` is cudaSuccess.
void check(cudaError_t code, const std::string& what);

/// Throws if a launch was refused; call right after the launch.
inline void check_launch(const std::string& what) { check(cudaGetLastError(), what); }

}  // namespace dic::kernels
