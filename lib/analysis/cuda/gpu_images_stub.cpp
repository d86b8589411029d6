#include "analysis/gpu_images.hpp"

// Stands in for gpu_images.cpp in builds without CUDA.
namespace dic::analysis {

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

}  // namespace dic::analysis
