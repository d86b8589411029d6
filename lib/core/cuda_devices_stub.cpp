#include <dic/error.hpp>

#include "core/cuda_devices.hpp"

// Stands in for cuda_devices.cpp in builds without CUDA.
namespace dic::core {

std::vector<DeviceInfo> cuda_devices(std::string& note) {
  note = "This dic was built without CUDA.";
  return {};
}

void start_cuda(const std::vector<int>&) {}

bool is_on_gpu(ImageView) { return false; }

Image copy_from_gpu(ImageView) { return {}; }

std::vector<CudaCeiling> measure_cuda_ceilings(int, int) {
  throw DeviceError(
      "This dic was built without CUDA: use --device cpu, or build it where nvcc is installed.");
}

}  // namespace dic::core
