#include "analysis/gpu_images.hpp"

// Stands in for gpu_images.cpp in builds without CUDA.
namespace dic::analysis {

void wait_for_default_stream(const ImageView&) {}

struct GpuPatches::Memory {};
GpuPatches::GpuPatches(const std::vector<NoisePatch>&) {}
GpuPatches::~GpuPatches() = default;
Image GpuPatches::copy(const ImageView&) { return {}; }

struct GpuLowPass::Memory {};
GpuLowPass::GpuLowPass(double) {}
GpuLowPass::~GpuLowPass() = default;
bool GpuLowPass::takes(ScalarType) const { return false; }
ImageView GpuLowPass::operator()(const ImageView&) { return {}; }

}  // namespace dic::analysis
