#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace dic {

/// While one lives, the resident memory of this process is kept to so many bytes: images, and what is
/// computed from them pixel by pixel, then lie in files without a name, which are mapped into memory and
/// whose pages are given back when they become too many. Results are the same, to the bit; the disk has to
/// have room for the images, and its speed counts where the system's page cache is too small for them.
///
/// Of several at the same time the smallest counts. Not kept within: the points of a grid and their results,
/// and what libraries take (decoders of JPEG and video).
class MemoryLimit {
 public:
  /// 0 = no limit. folder: for the files, or one that will be made; has to be on a disk, and not in memory as
  /// /tmp may be. Throws UsageError where the system cannot do it.
  MemoryLimit(std::size_t bytes, const std::filesystem::path& folder);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};

/// Bytes of this process that are in memory.
std::size_t resident_bytes();

/// Memory for the pixels of an image.
class PixelMemory {
 public:
  enum class Content : std::uint8_t { zeros, any };

  PixelMemory() = default;
  /// content: at first. Throws std::bad_alloc; with a MemoryLimit FileError where the disk is full.
  explicit PixelMemory(std::size_t bytes, Content content = Content::zeros);
  PixelMemory(const PixelMemory& other);
  PixelMemory(PixelMemory&& other) noexcept;
  PixelMemory& operator=(PixelMemory other) noexcept;
  ~PixelMemory();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool is_mapped_ = false;
};

}  // namespace dic
