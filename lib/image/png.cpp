#include <zlib.h>

#include <cstring>
#include <string_view>

#include "image/codecs.hpp"

namespace dic {
namespace {

constexpr std::size_t kSignature = 8;
constexpr std::size_t kFrame = 12;  // length and type before a chunk's data, CRC behind

std::uint32_t big_endian(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

void check_header(const std::uint8_t* data, std::uint32_t length) {
  if (length != 13) throw damaged("PNG", "its header has a wrong length");
  check_size(big_endian(data), big_endian(data + 4));
}

/// Checks that every chunk is whole up to IEND and closes the gaps of those that do not carry pixels. libpng
/// would notice damage too, but reports it on stderr, where it also writes about colour profiles and comments
/// of intact files. Returns the new length.
std::size_t keep_pixel_chunks(std::span<std::uint8_t> bytes) {
  std::size_t read = kSignature, write = kSignature;
  for (bool last = false; !last;) {
    if (bytes.size() - read < kFrame) throw damaged("PNG", "it ends before its last chunk");
    std::uint8_t* chunk = bytes.data() + read;
    const std::uint32_t length = big_endian(chunk);
    if (length > bytes.size() - read - kFrame) throw damaged("PNG", "it ends inside its image data");
    const std::string_view type(reinterpret_cast<const char*>(chunk) + 4, 4);
    if (crc32(0, chunk + 4, length + 4) != big_endian(chunk + 8 + length))
      throw damaged("PNG", "a checksum is wrong");
    if ((type == "IHDR") != (read == kSignature)) throw damaged("PNG", "its header is not at the start");
    if (type == "IHDR") check_header(chunk + 8, length);

    last = type == "IEND";
    if (type == "IHDR" || type == "PLTE" || type == "IDAT" || last) {
      std::memmove(bytes.data() + write, chunk, length + kFrame);
      write += length + kFrame;
    }
    read += length + kFrame;
  }
  return write;
}

}  // namespace

Image decode_png(std::vector<std::uint8_t> bytes) {
  bytes.resize(keep_pixel_chunks(bytes));
  return decode_with_opencv(std::move(bytes));
}

}  // namespace dic
