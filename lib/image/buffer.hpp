#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/memory.hpp>
#include <span>

namespace dic {

/// Memory that is kept from file to file: new memory costs as much as reading an image into it.
class Buffer {
 public:
  /// `size` bytes with any content.
  std::span<std::uint8_t> get(std::size_t size) {
    if (size > bytes_.size()) {
      bytes_ = PixelMemory();
      bytes_ = PixelMemory(size, PixelMemory::Content::any);
    }
    return {reinterpret_cast<std::uint8_t*>(bytes_.data()), size};
  }

 private:
  PixelMemory bytes_;
};

/// What reading or writing one image needs beside the image.
struct ImageBuffers {
  Buffer file, unpacked;
};

}  // namespace dic
