#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <filesystem>
#include <span>

namespace dic::image {

/// A file of which pieces are read at any place, by several threads at the same time.
class RawFile {
 public:
  /// Throws Refusal if the file is missing, unreadable or not a regular file.
  DIC_INTERNAL_API explicit RawFile(const std::filesystem::path& path);
  DIC_INTERNAL_API ~RawFile();
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  std::uint64_t size() const { return size_; }
  /// Fills `bytes` from `offset`; returns false if the file ends before.
  DIC_INTERNAL_API bool read(std::uint64_t offset, std::span<std::uint8_t> bytes) const;

 private:
  int file_ = -1;
  std::uint64_t size_ = 0;
};

/// The number at bytes[at], low byte first.
template <typename T>
T little_endian(std::span<const std::uint8_t> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(std::uint64_t{value} << 8 | bytes[at + i]);
  return value;
}

}  // namespace dic::image
