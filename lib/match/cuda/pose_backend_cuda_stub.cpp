#include <dic/error.hpp>

#include "match/pose_backend.hpp"

// Stands in for pose_backend_cuda.cpp in builds without CUDA.
namespace dic::match {

std::unique_ptr<PoseBackend> open_cuda_poses(int, core::ThreadPool&) {
  throw DeviceError(
      "This dic was built without CUDA: use --device cpu, or build it where nvcc is installed with "
      "-DDIC_CUDA=ON.");
}

}  // namespace dic::match
