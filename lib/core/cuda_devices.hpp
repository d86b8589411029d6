#pragma once

#include <dic/image.hpp>
#include <dic/info.hpp>
#include <string>
#include <vector>

namespace dic {

// Defined by exactly one file of the build: cuda_devices.cpp or cuda_devices_stub.cpp.

/// The GPUs that this build can use. Where there are none, `note` receives one sentence that says why.
std::vector<DeviceInfo> cuda_devices(std::string& note);

/// Initializes GPUs (all where none is named), so that later calls need not wait some tenths of a second for
/// it. Throws DeviceError.
void start_cuda(const std::vector<int>& ordinals);

/// Is the image in the memory of a GPU?
bool is_on_gpu(ImageView image);
/// A copy on the host of an image in the memory of a GPU, after what was queued in the default stream; empty
/// for an image that the host can read.
Image copy_from_gpu(ImageView image);

/// What a GPU does at most per second.
struct CudaCeiling {
  std::string name;           ///< "f32 multiply-adds", "memory"
  bool is_bandwidth = false;  ///< bytes per second; otherwise operations, of which a multiply-add is two
  double per_second = 0;
};
/// Measures the GPU number `ordinal`; the best of the repeats. Throws DeviceError.
std::vector<CudaCeiling> measure_cuda_ceilings(int ordinal, int repeats);

}  // namespace dic
