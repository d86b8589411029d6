#include <dic/error.hpp>

#include "track/backend.hpp"

// Stands in for backend_cuda.cpp in builds without CUDA.
namespace dic::track {

std::unique_ptr<TrackingBackend> open_cuda(const TrackOptions&, const ImageView&, const MeasuredScene&,
                                           std::span<const int>, core::ThreadPool&) {
  throw DeviceError(
      "This dic was built without CUDA: use --device cpu, or build it where nvcc is installed with "
      "-DDIC_CUDA=ON.");
}

}  // namespace dic::track
