#pragma once

#include <dic/kernels/device.hpp>
#include <string_view>
#include <vector>

/// Measured peak rates of a device: arithmetic in registers, and copies within its memory.
namespace dic::kernels {

struct Ceiling {
  std::string_view name;  ///< "f32 multiply-adds", "memory"
  bool is_bandwidth = false;
  double per_second = 0;  ///< operations (a multiply-add is two), or bytes read and written
};

/// Measures the current device and returns the best of the repeats. Throws DeviceError.
std::vector<Ceiling> measure_ceilings(const Device& device, int repeats);

}  // namespace dic::kernels
