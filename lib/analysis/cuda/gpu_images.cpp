#include "analysis/gpu_images.hpp"

#include <algorithm>
#include <dic/kernels/device.hpp>
#include <dic/kernels/filter.hpp>
#include <dic/kernels/memory_space.hpp>
#include <dic/kernels/squares.hpp>
#include <dic/shared/gaussian.hpp>
#include <map>

namespace dic::analysis {
namespace {

constexpr int kReach = NoisePatch::kReach, kSide = 2 * kReach;

kernels::DeviceImage device_image(const ImageView& image) {
  return {image.data, image.row_bytes, image.width, image.height};
}

}  // namespace

void wait_for_default_stream(const ImageView& image) {
  kernels::wait_for_default_stream(kernels::device_of(image.data));
}

/// Memory on each GPU that has had an image.
struct GpuPatches::Memory {
  struct OfGpu {
    kernels::Stream stream;
    kernels::DeviceBuffer corners, copies;
  };
  std::map<int, OfGpu> gpus;
};

GpuPatches::GpuPatches(const std::vector<NoisePatch>& patches)
    : patches_(patches), memory_(std::make_unique<Memory>()) {
  for (std::size_t k = 0; k < patches.size(); ++k)
    in_copy_.push_back({kReach, static_cast<int>(k) * kSide + kReach});
}

GpuPatches::~GpuPatches() = default;

Image GpuPatches::copy(const ImageView& image) {
  const int count = static_cast<int>(patches_.size()), gpu = kernels::device_of(image.data);
  const kernels::DeviceScope scope(gpu);
  const bool is_new = !memory_->gpus.contains(gpu);
  auto& [stream, device_corners, copies] = memory_->gpus[gpu];
  auto* corners = device_corners.reserve<kernels::Corner>(count);
  if (is_new) {
    std::vector<kernels::Corner> all;
    for (const NoisePatch& patch : patches_) all.push_back({patch.x - kReach, patch.y - kReach});
    kernels::upload(corners, all.data(), all.size() * sizeof(kernels::Corner), stream);
  }
  Image out({kSide, kSide * count}, image.type);
  const std::size_t element = size_of(image.type), bytes = element * kSide * kSide * count;
  void* const squares = copies.reserve(bytes);
  kernels::launch_copy_squares(device_image(image), element, corners, count, kSide, squares, stream.handle());
  kernels::download(out.row<std::byte>(0), squares, bytes, stream);
  stream.synchronize("the copy of patches");
  return out;
}

struct GpuLowPass::Memory {
  struct OfGpu {
    kernels::Stream stream;
    kernels::DeviceBuffer filtered;
  };
  std::map<int, OfGpu> gpus;
};

GpuLowPass::GpuLowPass(double sigma) : memory_(std::make_unique<Memory>()) {
  const std::vector<double> half = gaussian_taps(sigma);
  taps_.assign(half.rbegin(), half.rend());
  taps_.insert(taps_.end(), half.begin() + 1, half.end());
}

GpuLowPass::~GpuLowPass() = default;

bool GpuLowPass::takes(ScalarType type) const {
  const bool is_known = type == ScalarType::u8 || type == ScalarType::u16 || type == ScalarType::f32;
  return is_known && taps_.size() <= kernels::most_taps;
}

ImageView GpuLowPass::operator()(const ImageView& image) {
  const int gpu = kernels::device_of(image.data);
  const kernels::DeviceScope scope(gpu);
  auto& [stream, filtered] = memory_->gpus[gpu];
  const std::size_t pitch = kernels::device_pitch(image.width, sizeof(float));
  auto* out = static_cast<float*>(filtered.reserve(pitch * image.height));
  const auto row_bytes = static_cast<std::ptrdiff_t>(pitch);
  kernels::launch_convolution(device_image(image), image.type, taps_, taps_,
                              kernels::Border::point_reflection, {out, row_bytes}, stream.handle());
  stream.synchronize("the low-pass of a frame");
  return {out, ScalarType::f32, image.width, image.height, row_bytes};
}

}  // namespace dic::analysis
