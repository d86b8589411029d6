#pragma once

#include <cstddef>

namespace dic::kernels {

/// An image in device memory. `data` and `row_bytes` are multiples of the element size; no further alignment
/// is required.
struct DeviceImage {
  const void* data = nullptr;
  std::ptrdiff_t row_bytes = 0;
  int width = 0;
  int height = 0;
};

/// Bytes from row to row of images that dic places in device memory: rows start at whole cache lines.
constexpr std::size_t device_pitch(int width, std::size_t element_bytes) {
  constexpr std::size_t alignment = 256;
  const std::size_t bytes = width > 0 ? width * element_bytes : 0;
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Memory for the output image of a kernel, whose size follows from the input. Alignment as for DeviceImage.
template <typename T>
struct DevicePlane {
  T* data = nullptr;
  std::ptrdiff_t row_bytes = 0;
};

}  // namespace dic::kernels
