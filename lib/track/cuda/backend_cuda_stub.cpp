#include <dic/error.hpp>

#include "track/backend.hpp"
#include "track/gpu_images.hpp"

// Stands in for backend_cuda.cpp and gpu_images.cpp in builds without CUDA.
namespace dic::track {

std::unique_ptr<Backend> open_cuda(const TrackOptions&, const ImageView&, const Points&,
                                   std::span<const int>) {
  throw DeviceError(
      "This dic was built without CUDA: use --device cpu, or build it where nvcc is installed with "
      "-DDIC_CUDA=ON.");
}

void wait_for_default_stream(const ImageView&) {}

struct GpuPlaces::Memory {};
GpuPlaces::GpuPlaces(const std::vector<NoisePlace>&) {}
GpuPlaces::~GpuPlaces() = default;
Image GpuPlaces::copy(const ImageView&) { return {}; }

struct GpuLowPass::Memory {};
GpuLowPass::GpuLowPass(double) {}
GpuLowPass::~GpuLowPass() = default;
bool GpuLowPass::takes(ScalarType) const { return false; }
ImageView GpuLowPass::operator()(const ImageView&) { return {}; }

}  // namespace dic::track
