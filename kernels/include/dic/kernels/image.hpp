#pragma once

#include <cstddef>

namespace dic::kernels {

/// An image in device memory. `data` and `row_bytes` are multiples of the element size; nothing more is
/// asked of alignment.
struct DeviceImage {
  const void* data = nullptr;
  std::ptrdiff_t row_bytes = 0;
  int width = 0;
  int height = 0;
};

/// Where a kernel writes an image whose size follows from its input. Alignment as for DeviceImage.
template <typename T>
struct DevicePlane {
  T* data = nullptr;
  std::ptrdiff_t row_bytes = 0;
};

}  // namespace dic::kernels
