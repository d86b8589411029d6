#pragma once

#include <dic/info.hpp>
#include <string>
#include <vector>

namespace dic {

/// The GPUs that this build can use. Where there are none, `note` receives one sentence that says why.
/// Both are defined by exactly one file of the build: cuda_devices.cpp or cuda_devices_stub.cpp.
std::vector<DeviceInfo> cuda_devices(std::string& note);

/// Starts GPUs (none named: all), which takes some tenths of a second, for later calls to find them ready.
/// Throws DeviceError.
void start_cuda(const std::vector<int>& ordinals);

}  // namespace dic
