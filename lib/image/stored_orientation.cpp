#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "image/orientation.hpp"

namespace dic::image {
namespace {

using namespace std::string_view_literals;

/// Parts of a file that are read as they are needed; shorter where the file ends.
class Parts {
 public:
  explicit Parts(const std::filesystem::path& path) : file_(path, std::ios::binary) {}

  std::string at(std::uint64_t offset, std::size_t size) {
    std::string bytes(size, '\0');
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    file_.read(bytes.data(), static_cast<std::streamsize>(size));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file_.gcount())));
    return bytes;
  }

 private:
  std::ifstream file_;
};

std::uint64_t number(std::string_view bytes, bool is_little) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value = value << 8 | static_cast<std::uint8_t>(bytes[is_little ? bytes.size() - 1 - i : i]);
  return value;
}

Orientation orientation_of_exif(std::string_view exif) {
  return exif_orientation({reinterpret_cast<const std::uint8_t*>(exif.data()), exif.size()});
}

constexpr std::size_t kBlock = 2048;  ///< bytes of EXIF data that hold its first directory
constexpr int kMostParts = 1000;      ///< segments or chunks; more are not looked through

Orientation orientation_of_jpeg(Parts& file) {
  constexpr std::string_view kExif = "Exif\0\0"sv;
  std::uint64_t at = 2;
  for (int part = 0; part < kMostParts; ++part) {
    const std::string head = file.at(at, 4);
    if (head.size() < 4 || head[0] != '\xff' || head[1] == '\xda') break;  // the pixels begin
    const std::uint64_t size = number(std::string_view(head).substr(2), false);
    if (const std::string data = head[1] == '\xe1' ? file.at(at + 4, kBlock) : ""; data.starts_with(kExif))
      return orientation_of_exif(std::string_view(data).substr(kExif.size()));
    at += 2 + size;
  }
  return kAsStored;
}

Orientation orientation_of_png(Parts& file) {
  std::uint64_t at = 8;
  for (int part = 0; part < kMostParts; ++part) {
    const std::string head = file.at(at, 8);
    if (head.size() < 8 || head.ends_with("IDAT") || head.ends_with("IEND")) break;
    const std::uint64_t size = number(std::string_view(head).substr(0, 4), false);
    if (head.ends_with("eXIf"))
      return orientation_of_exif(file.at(at + 8, std::min<std::uint64_t>(size, kBlock)));
    at += 12 + size;
  }
  return kAsStored;
}

/// A TIFF is a block of EXIF data whose directory may stand far behind its head.
Orientation orientation_of_tiff(Parts& file, std::string_view head) {
  const bool is_little = head.starts_with("II");
  std::string block(head.substr(0, 4));
  block += is_little ? "\x08\0\0\0"sv : "\0\0\0\x08"sv;
  return orientation_of_exif(block + file.at(number(head.substr(4, 4), is_little), kBlock));
}

}  // namespace

Orientation stored_orientation(const std::filesystem::path& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return kAsStored;  // a pipe would be waited for
  Parts file(path);
  const std::string head = file.at(0, 8);
  if (head.size() < 8) return kAsStored;
  if (head.starts_with("\xff\xd8\xff")) return orientation_of_jpeg(file);
  if (head.starts_with("\x89PNG\r\n\x1a\n")) return orientation_of_png(file);
  if (head.starts_with("II*\0"sv) || head.starts_with("MM\0*"sv)) return orientation_of_tiff(file, head);
  return kAsStored;
}

}  // namespace dic::image
