#pragma once

#include <tiffio.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "image/tiff_page.hpp"

namespace dic::image {

/// An open TIFF file. It reads by pread(): libtiff would map the file into memory, and then the process is
/// killed if the file shrinks.
class TiffFile {
 public:
  /// Throws Refusal if the file cannot be opened or is not a TIFF. Goes to the first page.
  explicit TiffFile(const std::filesystem::path& path);
  ~TiffFile();
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;

  TIFF* tiff() const { return tiff_.get(); }
  std::uint64_t size() const { return size_; }
  /// Goes to a page. Throws Refusal.
  void go_to(const TiffPage& page);
  /// Reads pixels from now on of a page whose directory is shared.
  void shift_reads(std::uint64_t bytes) { shift_ = bytes; }

  /// True if libtiff has warned since the last call of forget_warnings(). While pixels are decoded, a warning
  /// means that libtiff invented some of them.
  bool warned() const { return warned_; }
  void forget_warnings() { warned_ = false; }

 private:
  static tmsize_t read(thandle_t handle, void* bytes, tmsize_t size);
  static toff_t seek(thandle_t handle, toff_t offset, int whence);

  int file_ = -1;
  std::uint64_t size_ = 0, position_ = 0, shift_ = 0;
  bool warned_ = false;
  std::unique_ptr<TIFF, decltype(&TIFFClose)> tiff_{nullptr, TIFFClose};
};

/// The value of a tag of the current page, or its default by the format, or `fallback`.
template <typename T>
T tiff_tag(TIFF* tiff, std::uint32_t name, T fallback) {
  T value{};
  return TIFFGetFieldDefaulted(tiff, name, &value) ? value : fallback;
}

/// The text of a tag of the current page; empty if it has none.
std::string tiff_text(TIFF* tiff, std::uint32_t name);

/// The pages of a TIFF that are pictures, in order, at least one: without thumbnails, reduced copies and
/// transparency masks, and with the full picture of a page that is only a thumbnail of it (DNG and other raw
/// photographs). Throws Refusal.
std::vector<TiffPage> tiff_pages(TiffFile& file);

}  // namespace dic::image
