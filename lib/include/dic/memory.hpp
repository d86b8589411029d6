#pragma once

#include <cstddef>
#include <dic/export.hpp>
#include <filesystem>

namespace dic {

/// Limits the resident memory of this process to a number of bytes while the object lives: images, and what
/// is computed from them pixel by pixel, then lie in unnamed files that are mapped into memory, and their
/// pages are given back when they become too many. Results stay the same to the bit. The disk must have room
/// for the images; its speed matters if the system's page cache is too small for them.
///
/// If several objects live at the same time, the smallest limit counts. The limit does not cover the points
/// of a grid and their results, nor memory taken by libraries (decoders of JPEG and video).
class MemoryLimit {
 public:
  /// bytes: 0 = no limit. folder: where the files are put; it may be one that will be made, and must be on a
  /// disk, not in memory as /tmp may be. Throws UsageError if the system does not support this.
  DIC_API MemoryLimit(std::size_t bytes, const std::filesystem::path& folder);
  DIC_API ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};

/// Resident memory of this process, bytes.
DIC_API std::size_t resident_bytes();

/// Memory for the pixels of an image.
class PixelMemory {
 public:
  PixelMemory() = default;
  /// Memory filled with zeros. Throws std::bad_alloc; with a MemoryLimit, FileError if the disk is full.
  explicit PixelMemory(std::size_t bytes) : PixelMemory(bytes, true) {}
  /// Memory that must be written before it is read. Throws like the constructor.
  static PixelMemory uninitialized(std::size_t bytes) { return {bytes, false}; }
  DIC_API PixelMemory(const PixelMemory& other);
  DIC_API PixelMemory(PixelMemory&& other) noexcept;
  DIC_API PixelMemory& operator=(PixelMemory other) noexcept;
  DIC_API ~PixelMemory();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  DIC_API PixelMemory(std::size_t bytes, bool zeros);

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool is_mapped_ = false;
};

}  // namespace dic
