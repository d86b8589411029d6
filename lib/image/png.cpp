#include <libdeflate.h>

#include <bit>
#include <cstring>
#include <memory>
#include <string_view>

#include "image/codecs.hpp"
#include "image/grey.hpp"
#include "image/opencv_codecs.hpp"
#include "image/png_filter.hpp"

namespace dic {
namespace {

constexpr std::size_t kSignature = 8;
constexpr std::size_t kFrame = 12;  // length and type before a chunk's data, CRC behind

std::uint32_t big_endian(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

/// The header chunk IHDR.
struct Header {
  std::uint32_t width = 0, height = 0;
  int depth = 0, colour = 0, compression = 0, filter = 0, interlace = 0;

  /// Samples per pixel: 1 grey, 2 with alpha, 3 RGB, 4 with alpha; 0 for a palette.
  int samples() const {
    switch (colour) {
      case 0:
        return 1;
      case 2:
        return 3;
      case 4:
        return 2;
      case 6:
        return 4;
      default:
        return 0;
    }
  }
  /// What cameras write is decoded here; palettes, bits that share bytes and interlaced images are rare.
  bool plain() const {
    return samples() > 0 && (depth == 8 || depth == 16) && compression == 0 && filter == 0 && interlace == 0;
  }
  std::size_t pixel_bytes() const { return static_cast<std::size_t>(samples() * depth / 8); }
  std::size_t row_bytes() const { return width * pixel_bytes(); }
};

/// The first chunk must be the header.
Header read_header(std::span<const std::uint8_t> bytes) {
  constexpr std::uint32_t kLength = 13;
  if (bytes.size() < kSignature + kFrame + kLength) throw damaged("PNG", "it ends before its last chunk");
  const std::uint8_t* chunk = bytes.data() + kSignature;
  if (std::memcmp(chunk + 4, "IHDR", 4) != 0) throw damaged("PNG", "its header is not at the start");
  if (big_endian(chunk) != kLength) throw damaged("PNG", "its header has a wrong length");
  const std::uint8_t* data = chunk + 8;
  const Header header{big_endian(data), big_endian(data + 4), data[8], data[9], data[10], data[11], data[12]};
  check_size(header.width, header.height);
  check_plausible(header.width, header.height, bytes.size());
  return header;
}

/// The whole file is checked: every chunk up to IEND, and its checksum.
class Chunks {
 public:
  explicit Chunks(std::span<std::uint8_t> bytes) : bytes_(bytes) {}

  /// Calls use(type, chunk) with the start of each chunk and its length with the frame.
  template <typename Use>
  void for_each(const Use& use) const {
    std::size_t at = kSignature;
    for (bool last = false; !last;) {
      if (bytes_.size() - at < kFrame) throw damaged("PNG", "it ends before its last chunk");
      const std::span chunk = bytes_.subspan(at);
      const std::uint32_t length = big_endian(chunk.data());
      if (length > chunk.size() - kFrame) throw damaged("PNG", "it ends inside its image data");
      const std::string_view type(reinterpret_cast<const char*>(chunk.data()) + 4, 4);
      if (libdeflate_crc32(0, chunk.data() + 4, length + 4) != big_endian(chunk.data() + 8 + length))
        throw damaged("PNG", "a checksum is wrong");
      if ((type == "IHDR") != (at == kSignature)) throw damaged("PNG", "its header is not at the start");
      last = type == "IEND";
      use(type, chunk.first(length + kFrame));
      at += length + kFrame;
    }
  }

 private:
  std::span<std::uint8_t> bytes_;
};

/// Closes the gaps of the chunks that do not carry pixels, since libpng writes about colour profiles and
/// comments of intact files on stderr. Returns the new length.
std::size_t keep_pixel_chunks(std::span<std::uint8_t> bytes) {
  std::size_t end = kSignature;
  Chunks(bytes).for_each([&](std::string_view type, std::span<std::uint8_t> chunk) {
    if (type != "IHDR" && type != "PLTE" && type != "IDAT" && type != "IEND") return;
    std::memmove(bytes.data() + end, chunk.data(), chunk.size());
    end += chunk.size();
  });
  return end;
}

/// The image data of all IDAT chunks one behind the other, moved to the start of `bytes`.
std::span<const std::uint8_t> gather_image_data(std::span<std::uint8_t> bytes) {
  std::size_t end = 0;
  Chunks(bytes).for_each([&](std::string_view type, std::span<std::uint8_t> chunk) {
    if (type != "IDAT") return;
    std::memmove(bytes.data() + end, chunk.data() + 8, chunk.size() - kFrame);
    end += chunk.size() - kFrame;
  });
  return bytes.first(end);
}

/// The filtered rows, each behind the number of its filter.
std::unique_ptr<std::uint8_t[]> inflate(const Header& header, std::span<const std::uint8_t> data) {
  constexpr std::size_t kLargestRatio =
      1032;  // of deflate: a file must not ask for memory that it cannot fill
  const std::size_t size = (header.row_bytes() + 1) * header.height;
  if (size / kLargestRatio > data.size()) throw damaged("PNG", "its image data are incomplete");
  auto rows = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflater(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!inflater) throw std::bad_alloc();
  const auto result =
      libdeflate_zlib_decompress(inflater.get(), data.data(), data.size(), rows.get(), size, nullptr);
  if (result != LIBDEFLATE_SUCCESS) throw damaged("PNG", "its image data cannot be decompressed");
  return rows;
}

void swap_bytes(std::span<std::uint16_t> row) {
  if constexpr (std::endian::native == std::endian::little)
    for (std::uint16_t& value : row) value = static_cast<std::uint16_t>(value << 8 | value >> 8);
}

/// The image of filtered rows whose samples have the type T. A row and the one above it are kept as bytes in
/// samples of T.
template <typename T>
Image image_of(const Header& header, const std::uint8_t* filtered, ScalarType type) {
  Image image({static_cast<int>(header.width), static_cast<int>(header.height)}, type);
  const std::size_t row_bytes = header.row_bytes(), samples = header.samples();
  const std::size_t second = samples < 3 ? 0 : 1;
  std::vector<T> above(header.width * samples), row(above.size()), pixels(above.size());
  for (std::uint32_t y = 0; y < header.height; ++y) {
    const std::uint8_t* in = filtered + y * (row_bytes + 1);
    if (!png_unfilter({in + 1, row_bytes}, in[0], reinterpret_cast<const std::uint8_t*>(above.data()),
                      header.pixel_bytes(), reinterpret_cast<std::uint8_t*>(row.data())))
      throw damaged("PNG", "a row has an unknown filter");
    above.swap(row);
    pixels = above;
    if constexpr (sizeof(T) == 2) swap_bytes(pixels);
    const T* first = pixels.data();
    T* out = image.row<T>(static_cast<int>(y));
    if (samples == 1)
      std::copy(pixels.begin(), pixels.end(), out);
    else
      grey_row(Channels<T>{{first, first + second, first + 2 * second}, static_cast<int>(samples)},
               image.width(), out);
  }
  return image;
}

}  // namespace

Image decode_png(std::vector<std::uint8_t> bytes) {
  if (bytes.size() < kSignature + kFrame) throw damaged("PNG", "it ends before its last chunk");
  const Header header = read_header(bytes);
  if (!header.plain()) {
    bytes.resize(keep_pixel_chunks(bytes));
    return opencv_codecs().decode(std::move(bytes));
  }
  const auto rows = inflate(header, gather_image_data(bytes));
  return header.depth == 8 ? image_of<std::uint8_t>(header, rows.get(), ScalarType::u8)
                           : image_of<std::uint16_t>(header, rows.get(), ScalarType::u16);
}

}  // namespace dic
