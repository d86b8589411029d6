#pragma once

#include <dic/export.hpp>
#include <dic/image.hpp>
#include <dic/info.hpp>
#include <string>
#include <vector>

namespace dic::core {

// A build defines these functions in exactly one file: cuda_devices.cpp or cuda_devices_stub.cpp.

/// The GPUs that this build can use. If there are none, `note` receives one sentence that says why.
std::vector<DeviceInfo> cuda_devices(std::string& note);

/// Initializes the GPUs with these numbers (empty = all), so that later calls need not wait some tenths of a
/// second for it. Throws DeviceError.
void start_cuda(const std::vector<int>& ordinals);

/// True if the pixels are in the memory of a GPU.
bool is_on_gpu(ImageView image);
/// Copies an image from the memory of a GPU to the host, after all work queued in the default stream. Returns
/// an empty image if the host can already read the pixels.
Image copy_from_gpu(ImageView image);

/// Highest rate that a GPU reaches for one kind of work.
struct CudaCeiling {
  std::string name;           ///< "f32 multiply-adds", "memory"
  bool is_bandwidth = false;  ///< true: bytes per second; false: operations, a multiply-add counts as two
  double per_second = 0;
};
/// Measures GPU number `ordinal` and returns the best of the repeats. Throws DeviceError.
DIC_INTERNAL_API std::vector<CudaCeiling> measure_cuda_ceilings(int ordinal, int repeats);

}  // namespace dic::core
