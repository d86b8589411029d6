#pragma once

#include <dic/info.hpp>
#include <string>
#include <vector>

namespace dic {

/// The GPUs that this build can use. Where there are none, `note` receives one sentence that says why.
/// Defined by exactly one file of the build: cuda_devices.cpp or cuda_devices_stub.cpp.
std::vector<DeviceInfo> cuda_devices(std::string& note);

}  // namespace dic
