#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace dic {

/// Memory that is kept from file to file: new memory costs as much as reading an image into it.
class Buffer {
 public:
  /// `size` bytes with any content.
  std::span<std::uint8_t> get(std::size_t size) {
    if (size > size_) {
      bytes_.reset();
      bytes_ = std::make_unique_for_overwrite<std::uint8_t[]>(size);
      size_ = size;
    }
    return {bytes_.get(), size};
  }

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t size_ = 0;
};

/// What reading or writing one image needs beside the image.
struct ImageBuffers {
  Buffer file, unpacked;
};

}  // namespace dic
