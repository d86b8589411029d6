#include <dic/error.hpp>

#include "refine/backend.hpp"

// Stands in for backend_cuda.cpp in builds without CUDA.
namespace dic::refine {

std::unique_ptr<Backend> open_cuda(const RefineOptions&, int) {
  throw DeviceError(
      "This dic was built without CUDA: use --device cpu, or build it where nvcc is installed with "
      "-DDIC_CUDA=ON.");
}

}  // namespace dic::refine
