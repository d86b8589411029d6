#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace dic::kernels {

/// Throws DeviceError "<what> failed on cuda:N (model): <CUDA's reason>. ..." unless `code` is cudaSuccess.
void check(cudaError_t code, const std::string& what);

/// Call right after a launch: throws if the launch itself was refused.
inline void check_launch(const std::string& what) { check(cudaGetLastError(), what); }

}  // namespace dic::kernels
