#include "core/cuda_devices.hpp"

#include <algorithm>
#include <dic/kernels/ceilings.hpp>
#include <dic/kernels/device.hpp>
#include <dic/kernels/memory_space.hpp>

namespace dic::core {

std::vector<DeviceInfo> cuda_devices(std::string& note) {
  std::string why;
  std::vector<DeviceInfo> found;
  for (const kernels::Device& device : kernels::devices(&why)) {
    const std::string capability =
        std::to_string(device.compute_capability / 10) + "." + std::to_string(device.compute_capability % 10);
    found.push_back(
        {"cuda:" + std::to_string(device.index), device.model,
         "compute capability " + capability + ", " + std::to_string(device.memory_bytes >> 20) + " MiB"});
  }
  if (found.empty()) note = "There is no GPU to use: " + why + ".";
  return found;
}

void start_cuda(const std::vector<int>& ordinals) {
  for (const kernels::Device& device : kernels::devices())
    if (ordinals.empty() || std::ranges::find(ordinals, device.index) != ordinals.end())
      const kernels::DeviceScope started(device.index);
}

bool is_on_gpu(ImageView image) { return kernels::is_device_memory(image.data); }

Image copy_from_gpu(ImageView image) {
  if (!is_on_gpu(image)) return {};
  Image copy(image.size(), image.type, image.bit_depth);
  const std::size_t row_bytes = image.width * size_of(image.type);
  kernels::wait_for_default_stream(kernels::device_of(image.data));
  const kernels::Stream stream;
  kernels::upload(copy.row<std::byte>(0), row_bytes, image.data, image.row_bytes, row_bytes, image.height,
                  stream);
  stream.synchronize("the copy of an image");
  return copy;
}

std::vector<CudaCeiling> measure_cuda_ceilings(int ordinal, int repeats) {
  const kernels::Device device = kernels::find_device(ordinal);
  const kernels::DeviceScope scope(device.index);
  std::vector<CudaCeiling> found;
  for (const kernels::Ceiling& ceiling : kernels::measure_ceilings(device, repeats))
    found.push_back({std::string(ceiling.name), ceiling.is_bandwidth, ceiling.per_second});
  return found;
}

}  // namespace dic::core
