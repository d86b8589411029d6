#include <dic/error.hpp>

#include "bench/device_ceilings.hpp"

// Stands in for ceilings_cuda.cpp in builds without CUDA.
namespace dic::bench {

std::vector<Ceiling> cuda_ceilings(int, int) {
  throw DeviceError(
      "This dic was built without CUDA: use --device cpu, or build it where nvcc is installed.");
}

}  // namespace dic::bench
