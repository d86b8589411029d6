#include <libdeflate.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "image/byte_order.hpp"
#include "image/codecs.hpp"
#include "image/grey.hpp"
#include "image/opencv_codecs.hpp"
#include "image/orientation.hpp"
#include "image/png_filter.hpp"

namespace dic::image {
namespace {

constexpr std::size_t kSignature = 8;
constexpr std::size_t kFrame = 12;  // bytes around a chunk's data: length and type before, CRC behind

std::uint32_t big_endian_at(const std::uint8_t* p) {
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
  /// True for what cameras write, which is decoded here; palettes, depths below 8 bits and interlaced images
  /// are rare, and OpenCV decodes them.
  bool plain() const {
    return samples() > 0 && (depth == 8 || depth == 16) && compression == 0 && filter == 0 && interlace == 0;
  }
  std::size_t pixel_bytes() const { return static_cast<std::size_t>(samples() * depth / 8); }
  std::size_t row_bytes() const { return width * pixel_bytes(); }
};

/// Reads the header, which must be the first chunk.
Header read_header(std::span<const std::uint8_t> bytes) {
  constexpr std::uint32_t kLength = 13;
  if (bytes.size() < kSignature + kFrame + kLength) throw damaged("PNG", "it ends before its last chunk");
  const std::uint8_t* chunk = bytes.data() + kSignature;
  if (std::memcmp(chunk + 4, "IHDR", 4) != 0) throw damaged("PNG", "its header is not at the start");
  if (big_endian_at(chunk) != kLength) throw damaged("PNG", "its header has a wrong length");
  const std::uint8_t* data = chunk + 8;
  const Header header{
      big_endian_at(data), big_endian_at(data + 4), data[8], data[9], data[10], data[11], data[12]};
  check_size(header.width, header.height);
  check_plausible(header.width, header.height, bytes.size());
  return header;
}

/// The chunks of a file. Every chunk up to IEND is checked, including its checksum.
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
      const std::uint32_t length = big_endian_at(chunk.data());
      if (length > chunk.size() - kFrame) throw damaged("PNG", "it ends inside its image data");
      const std::string_view type(reinterpret_cast<const char*>(chunk.data()) + 4, 4);
      if (libdeflate_crc32(0, chunk.data() + 4, length + 4) != big_endian_at(chunk.data() + 8 + length))
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

/// Data that were moved to the start of a file's bytes, and what was seen on the way.
struct Gathered {
  std::span<std::uint8_t> bytes;
  Orientation orientation = kAsStored;
};

/// Calls move(type, chunk) for every chunk, and notes the orientation.
template <typename Move>
Orientation for_each_chunk(std::span<std::uint8_t> bytes, const Move& move) {
  Orientation orientation = kAsStored;
  Chunks(bytes).for_each([&](std::string_view type, std::span<std::uint8_t> chunk) {
    if (type == "eXIf") orientation = exif_orientation(chunk.subspan(8, chunk.size() - kFrame));
    move(type, chunk);
  });
  return orientation;
}

/// Removes the chunks that are not asked for, because libpng writes messages about colour profiles and
/// comments of intact files to stderr.
Gathered keep_needed_chunks(std::span<std::uint8_t> bytes, Content content) {
  std::size_t end = kSignature;
  const Orientation orientation =
      for_each_chunk(bytes, [&](std::string_view type, std::span<std::uint8_t> chunk) {
        const bool is_needed = type == "IHDR" || type == "PLTE" || type == "IDAT" || type == "IEND" ||
                               (type == "tRNS" && content == Content::alpha);
        if (!is_needed) return;
        std::memmove(bytes.data() + end, chunk.data(), chunk.size());
        end += chunk.size();
      });
  return {bytes.first(end), orientation};
}

/// Moves the image data of all IDAT chunks, one behind the other, to the start of `bytes`.
Gathered gather_image_data(std::span<std::uint8_t> bytes) {
  std::size_t end = 0;
  const Orientation orientation =
      for_each_chunk(bytes, [&](std::string_view type, std::span<std::uint8_t> chunk) {
        if (type != "IDAT") return;
        std::memmove(bytes.data() + end, chunk.data() + 8, chunk.size() - kFrame);
        end += chunk.size() - kFrame;
      });
  return {bytes.first(end), orientation};
}

/// Decompresses the filtered rows; each follows the number of its filter.
std::span<const std::uint8_t> inflate(const Header& header, std::span<const std::uint8_t> data,
                                      Buffer& unpacked) {
  constexpr std::size_t kLargestRatio =
      1032;  // largest ratio of deflate: a file must not request memory that it cannot fill
  const std::size_t size = (header.row_bytes() + 1) * header.height;
  if (size / kLargestRatio > data.size()) throw damaged("PNG", "its image data are incomplete");
  const std::span<std::uint8_t> rows = unpacked.get(size);
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflater(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!inflater) throw std::bad_alloc();
  const auto result =
      libdeflate_zlib_decompress(inflater.get(), data.data(), data.size(), rows.data(), size, nullptr);
  if (result != LIBDEFLATE_SUCCESS) throw damaged("PNG", "its image data cannot be decompressed");
  return rows;
}

void unfilter_row(const Header& header, const std::uint8_t* filtered, const void* above, void* row) {
  if (!png_unfilter({filtered + 1, header.row_bytes()}, filtered[0], static_cast<const std::uint8_t*>(above),
                    header.pixel_bytes(), static_cast<std::uint8_t*>(row)))
    throw damaged("PNG", "a row has an unknown filter");
}

/// The image of filtered rows of 8-bit grey, which are unfiltered straight into it.
Image image_of_bytes(const Header& header, const std::uint8_t* filtered) {
  Image image = Image({static_cast<int>(header.width), static_cast<int>(header.height)}, ScalarType::u8);
  const std::vector<std::uint8_t> zeros(header.width);
  for (int y = 0; y < image.height(); ++y, filtered += header.row_bytes() + 1)
    unfilter_row(header, filtered, y > 0 ? image.row<std::uint8_t>(y - 1) : zeros.data(),
                 image.row<std::uint8_t>(y));
  return image;
}

/// The image of filtered rows whose samples have the type T. A row and the one above it are kept in file
/// order in vectors of T.
template <typename T>
Image image_of(const Header& header, const std::uint8_t* filtered, ScalarType type, Content content) {
  Image image({static_cast<int>(header.width), static_cast<int>(header.height)}, type);
  const std::size_t samples = header.samples(), second = samples < 3 ? 0 : 1;
  std::vector<T> above(header.width * samples), row(above.size()), pixels(above.size());
  for (int y = 0; y < image.height(); ++y, filtered += header.row_bytes() + 1) {
    unfilter_row(header, filtered, above.data(), row.data());
    above.swap(row);
    pixels = above;
    if constexpr (sizeof(T) == 2) swap_big_endian(pixels);
    const T* first = pixels.data();
    T* out = image.row<T>(y);
    if (samples == 1)
      std::copy(pixels.begin(), pixels.end(), out);
    else if (content == Content::alpha)
      for (std::size_t x = 0; x < header.width; ++x) out[x] = pixels[(x + 1) * samples - 1];
    else
      grey_row(Channels<T>{{first, first + second, first + 2 * second}, static_cast<int>(samples)},
               image.width(), out);
  }
  return image;
}

Image decode_rows(const Header& header, const std::uint8_t* rows, Content content) {
  if (header.depth == 16) return image_of<std::uint16_t>(header, rows, ScalarType::u16, content);
  return header.samples() == 1 ? image_of_bytes(header, rows)
                               : image_of<std::uint8_t>(header, rows, ScalarType::u8, content);
}

}  // namespace

Image decode_png(std::span<std::uint8_t> bytes, Buffer& unpacked, Content content) {
  if (bytes.size() < kSignature + kFrame) throw damaged("PNG", "it ends before its last chunk");
  const Header header = read_header(bytes);
  if (!header.plain()) {
    const auto [kept, orientation] = keep_needed_chunks(bytes, content);
    return oriented(opencv_codecs().decode({kept.begin(), kept.end()}, content), orientation);
  }
  if (content == Content::alpha && header.samples() % 2 == 1) return {};
  const auto [data, orientation] = gather_image_data(bytes);
  const std::uint8_t* rows = inflate(header, data, unpacked).data();
  return oriented(decode_rows(header, rows, content), orientation);
}

}  // namespace dic::image
