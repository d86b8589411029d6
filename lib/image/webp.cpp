#include "image/webp.hpp"

#include "image/codecs.hpp"

namespace dic::image {
namespace {

constexpr std::size_t kHead = 12, kChunkHead = 8;  // RIFF, size, WEBP; a chunk's type and size

bool is_webp(std::string_view bytes) {
  return bytes.starts_with("RIFF") && bytes.substr(0, kHead).ends_with("WEBP");
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

}  // namespace

void check_webp(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kCanvasAt = 24, kEnd = 30;  // width - 1 and height - 1, 3 bytes each
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_webp(text) || text.size() < kEnd || text.substr(kHead, 4) != "VP8X") return;
  const std::int64_t width = 1 + (little_endian(text, kCanvasAt) & 0xffffff);
  const std::int64_t height = 1 + (little_endian(text, kCanvasAt + 2) >> 8);
  check_size(width, height);
  check_plausible(width, height, bytes.size());
}

Orientation webp_orientation(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_webp(text)) return kAsStored;
  for (std::size_t at = kHead; at + kChunkHead <= text.size();) {
    const std::size_t size = little_endian(text, at + 4), data = at + kChunkHead;
    if (size > text.size() - data) break;
    if (text.substr(at, 4) == "EXIF") {
      // Some programs repeat the head that EXIF has in a JPEG.
      const std::size_t head = text.substr(data, size).starts_with("Exif") ? 6 : 0;
      return size < head ? kAsStored : exif_orientation(bytes.subspan(data + head, size - head));
    }
    at = data + size + size % 2;
  }
  return kAsStored;
}

bool is_lossy_webp(std::string_view start) {
  return is_webp(start) && start.find("VP8L", kHead) == std::string_view::npos;
}

}  // namespace dic::image
