#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/memory.hpp>
#include <span>

namespace dic::image {

/// Memory that is reused from file to file, because new memory costs as much as reading an image into it.
class Buffer {
 public:
  /// Returns `size` bytes with undefined contents.
  std::span<std::uint8_t> get(std::size_t size) {
    if (size > bytes_.size()) {
      bytes_ = PixelMemory();
      bytes_ = PixelMemory::uninitialized(size);
    }
    return {reinterpret_cast<std::uint8_t*>(bytes_.data()), size};
  }

 private:
  PixelMemory bytes_;
};

/// Memory that reading or writing an image needs in addition to the image.
struct ImageBuffers {
  Buffer file, unpacked;
};

}  // namespace dic::image
