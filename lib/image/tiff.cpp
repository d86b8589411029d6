#include <libdeflate.h>
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <new>
#include <type_traits>

#include "image/codecs.hpp"
#include "image/grey.hpp"
#include "image/orientation.hpp"
#include "image/packed.hpp"
#include "image/tiff_file.hpp"

namespace dic::image {
namespace {

// Colour spaces of raw photographs (DNG), which libtiff does not name.
constexpr std::uint16_t kColourFilterArray = 32803, kLinearRaw = 34892;

struct Layout {
  std::uint32_t width = 0, height = 0;
  std::uint32_t block_width = 0, block_height = 0;  // size of a strip or a tile
  std::uint16_t bits = 0, samples = 0, format = 0, photometric = 0;
  bool tiled = false, separate = false;
  int first = 0;  // number of the first sample that is read

  bool colour() const { return photometric == PHOTOMETRIC_RGB; }
  bool palette() const { return photometric == PHOTOMETRIC_PALETTE; }
  bool inks() const { return photometric == PHOTOMETRIC_SEPARATED; }
  bool white_is_zero() const { return photometric == PHOTOMETRIC_MINISWHITE; }
  bool is_float() const { return format == SAMPLEFORMAT_IEEEFP; }
  bool is_signed() const { return format == SAMPLEFORMAT_INT; }
  /// Number of channels that are read.
  int channels() const {
    if (inks()) return 4;
    return colour() ? 3 : 1;
  }
};

Layout read_layout(TIFF* tiff) {
  Layout layout;
  layout.width = tiff_tag(tiff, TIFFTAG_IMAGEWIDTH, 0u);
  layout.height = tiff_tag(tiff, TIFFTAG_IMAGELENGTH, 0u);
  layout.bits = tiff_tag(tiff, TIFFTAG_BITSPERSAMPLE, std::uint16_t{1});
  layout.samples = tiff_tag(tiff, TIFFTAG_SAMPLESPERPIXEL, std::uint16_t{1});
  layout.format = tiff_tag(tiff, TIFFTAG_SAMPLEFORMAT, std::uint16_t{SAMPLEFORMAT_UINT});
  const int guess = layout.samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  layout.photometric = tiff_tag(tiff, TIFFTAG_PHOTOMETRIC, static_cast<std::uint16_t>(guess));
  const auto compression = tiff_tag(tiff, TIFFTAG_COMPRESSION, std::uint16_t{COMPRESSION_NONE});
  if (compression == COMPRESSION_JPEG && layout.photometric == PHOTOMETRIC_YCBCR &&
      TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB))
    layout.photometric = PHOTOMETRIC_RGB;  // libtiff converts the colours
  if (layout.photometric == kLinearRaw && layout.samples >= 3) layout.photometric = PHOTOMETRIC_RGB;
  layout.separate =
      tiff_tag(tiff, TIFFTAG_PLANARCONFIG, std::uint16_t{PLANARCONFIG_CONTIG}) == PLANARCONFIG_SEPARATE;
  layout.tiled = TIFFIsTiled(tiff);
  layout.block_width = layout.tiled ? tiff_tag(tiff, TIFFTAG_TILEWIDTH, 0u) : layout.width;
  layout.block_height = layout.tiled
                            ? tiff_tag(tiff, TIFFTAG_TILELENGTH, 0u)
                            : std::min(tiff_tag(tiff, TIFFTAG_ROWSPERSTRIP, layout.height), layout.height);
  return layout;
}

bool has_supported_elements(const Layout& layout) {
  const int bits = layout.bits;
  if (layout.is_float()) return bits == 16 || bits == 32 || bits == 64;
  if (layout.is_signed()) return bits == 8 || bits == 16 || bits == 32;
  const bool is_unsigned = layout.format == SAMPLEFORMAT_UINT || layout.format == SAMPLEFORMAT_VOID;
  return is_unsigned && ((bits >= 1 && bits <= 16) || bits == 32);
}

void check_layout(const Layout& layout) {
  check_size(layout.width, layout.height);
  check_size(layout.block_width, layout.block_height);
  if (!has_supported_elements(layout))
    throw Refusal(
        "holds " + std::to_string(layout.bits) +
        "-bit elements of a type that is not supported; save it as 8, 16 or 32 bit, or as float of 16, 32 "
        "or 64 bit.");
  const auto p = layout.photometric;
  const bool is_raw = layout.samples == 1 && (p == kColourFilterArray || p == kLinearRaw);
  const bool grey =
      p == PHOTOMETRIC_MINISBLACK || p == PHOTOMETRIC_MINISWHITE || p == PHOTOMETRIC_MASK || is_raw;
  const bool whole = !layout.is_float() && !layout.is_signed();
  const bool palette = layout.palette() && whole && layout.bits <= 8;
  const bool colour = layout.colour() && layout.samples >= 3 && layout.bits >= 8;
  const bool inks = layout.inks() && layout.samples >= 4 && whole && (layout.bits == 8 || layout.bits == 16);
  if (!grey && !palette && !colour && !inks)
    throw Refusal(
        "is a TIFF in a colour space other than grey, RGB, CMYK or palette; save it as one of these.");
}

/// The name of a compression that libtiff may lack.
std::string name_of_compression(std::uint16_t compression) {
  switch (compression) {
    case COMPRESSION_OJPEG:
      return "old-style JPEG";
    case COMPRESSION_JPEG:
      return "JPEG";
    case 34712:
    case 33003:
    case 33005:
      return "JPEG 2000";
    case 34713:
      return "of Nikon";
    case 34892:
      return "lossy JPEG of DNG";
    case 34933:
      return "PNG";
    case COMPRESSION_JBIG:
      return "JBIG";
    case COMPRESSION_LZMA:
      return "LZMA";
    case COMPRESSION_LERC:
      return "LERC";
    case COMPRESSION_ZSTD:
      return "Zstandard";
    case COMPRESSION_WEBP:
      return "WebP";
    case 50002:
    case 52546:
      return "JPEG XL";
    default:
      return "number";
  }
}

Refusal unsupported_compression(std::uint16_t compression) {
  return Refusal("is a TIFF with a compression that is not supported (" + name_of_compression(compression) +
                 ", " + std::to_string(compression) +
                 "); save it without compression, or with LZW or Deflate.");
}

void check_compression(TIFF* tiff, const Layout& layout) {
  const auto compression = tiff_tag(tiff, TIFFTAG_COMPRESSION, std::uint16_t{COMPRESSION_NONE});
  const bool is_deep_jpeg =
      compression == COMPRESSION_JPEG && layout.bits != 8;  // raw photographs: lossless JPEG
  if (is_deep_jpeg || !TIFFIsCODECConfigured(compression)) throw unsupported_compression(compression);
}

/// Checks that a strip or tile can be allocated: a damaged file may claim gigabytes, more than any
/// compression can hold.
void check_block_size(TIFF* tiff, const Layout& layout, std::uint64_t file_bytes) {
  constexpr std::uint64_t kAlwaysFine = std::uint64_t{1} << 26, kMostCompression = 2000;
  const std::uint64_t bytes = layout.tiled ? TIFFTileSize64(tiff) : TIFFStripSize64(tiff);
  if (bytes > kAlwaysFine && bytes / kMostCompression > file_bytes)
    throw damaged("TIFF", "its parts claim to be larger than such a file can hold");
}

/// Checks that every strip or tile lies in the file: libtiff would read a missing one at its offset, 0.
void check_blocks(TIFF* tiff, const Layout& layout, std::uint64_t file_bytes) {
  const std::uint32_t blocks = layout.tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  const bool is_packed =
      tiff_tag(tiff, TIFFTAG_COMPRESSION, std::uint16_t{COMPRESSION_NONE}) != COMPRESSION_NONE;
  std::uint64_t stored = 0;
  for (std::uint32_t k = 0; k < blocks; ++k) {
    const std::uint64_t offset = TIFFGetStrileOffset(tiff, k), bytes = TIFFGetStrileByteCount(tiff, k);
    if (offset == 0 || bytes == 0 || offset > file_bytes || bytes > file_bytes - offset)
      throw damaged("TIFF", "parts of its image data are missing");
    stored += bytes;
  }
  const std::uint64_t bits = std::uint64_t{layout.width} * layout.height * layout.bits * layout.samples;
  if (!is_packed && stored < bits / 8) throw damaged("TIFF", "parts of its image data are missing");
}

/// A floating-point number of 16 bits.
struct Half {
  std::uint16_t bits = 0;

  explicit operator double() const {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == 31) return fraction ? NAN : sign * HUGE_VAL;
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
  }
};

void check_read(tmsize_t got, tmsize_t expected) {
  if (got < expected) throw damaged("TIFF", "its image data are incomplete");
}

/// Checks deflated data: libtiff does not read the checksum at their end, and so misses wrong data before it.
void check_deflated(TIFF* tiff, const Layout& layout, ImageBuffers& buffers) {
  const auto compression = tiff_tag(tiff, TIFFTAG_COMPRESSION, std::uint16_t{COMPRESSION_NONE});
  const bool is_deflated = compression == COMPRESSION_ADOBE_DEFLATE || compression == COMPRESSION_DEFLATE;
  const auto order = tiff_tag(tiff, TIFFTAG_FILLORDER, std::uint16_t{FILLORDER_MSB2LSB});
  if (!is_deflated || order != FILLORDER_MSB2LSB) return;
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflater(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!inflater) throw std::bad_alloc();
  const auto unpacked = buffers.unpacked.get(layout.tiled ? TIFFTileSize64(tiff) : TIFFStripSize64(tiff));
  const std::uint32_t blocks = layout.tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  for (std::uint32_t k = 0; k < blocks; ++k) {
    const auto packed = buffers.file.get(TIFFGetStrileByteCount(tiff, k));
    const auto size = static_cast<tmsize_t>(packed.size());
    check_read(layout.tiled ? TIFFReadRawTile(tiff, k, packed.data(), size)
                            : TIFFReadRawStrip(tiff, k, packed.data(), size),
               size);
    std::size_t written = 0;
    if (libdeflate_zlib_decompress(inflater.get(), packed.data(), packed.size(), unpacked.data(),
                                   unpacked.size(), &written) == LIBDEFLATE_BAD_DATA)
      throw damaged("TIFF", "its image data cannot be decompressed without errors");
  }
}

/// A strip or tile in all planes that are read, with its rows as samples of type T.
template <typename T>
class Block {
 public:
  Block(TIFF* tiff, const Layout& layout)
      : tiff_(tiff),
        layout_(layout),
        interleaved_(layout.separate ? 1 : layout.samples),
        row_bytes_(layout.tiled ? TIFFTileRowSize64(tiff) : TIFFScanlineSize64(tiff)) {
    for (auto& plane : planes_) plane.resize(layout.tiled ? TIFFTileSize64(tiff) : TIFFStripSize64(tiff));
  }

  void read(std::uint32_t x, std::uint32_t y) {
    for (std::size_t p = 0; p < planes_.size(); ++p) {
      const auto size = static_cast<tmsize_t>(planes_[p].size());
      const auto plane =
          static_cast<std::uint16_t>(layout_.separate ? layout_.first + static_cast<int>(p) : 0);
      const auto got =
          layout_.tiled
              ? TIFFReadEncodedTile(tiff_, TIFFComputeTile(tiff_, x, y, 0, plane), planes_[p].data(), size)
              : TIFFReadEncodedStrip(tiff_, TIFFComputeStrip(tiff_, y, plane), planes_[p].data(), size);
      const auto rows = std::min(layout_.block_height, layout_.height - y);
      check_read(got, static_cast<tmsize_t>(rows * row_bytes_));
    }
  }

  Channels<T> row(std::uint32_t r) {
    const auto channel = [&](int c) {
      if (layout_.separate) return samples(static_cast<std::size_t>(c), r);
      return samples(0, r) + layout_.first + c;
    };
    const int last = std::min(layout_.channels(), 3) - 1;
    Channels<T> channels{{channel(0), channel(std::min(1, last)), channel(last)}, interleaved_};
    if (layout_.inks()) channels.black = channel(3);
    return channels;
  }

 private:
  const T* samples(std::size_t plane, std::uint32_t r) {
    const std::uint8_t* row = planes_[plane].data() + r * row_bytes_;
    if (layout_.bits == 8 * sizeof(T)) return reinterpret_cast<const T*>(row);
    if constexpr (std::is_unsigned_v<T>) {
      auto& unpacked = unpacked_[plane];
      unpacked.resize(static_cast<std::size_t>(layout_.block_width) * interleaved_);
      unpack(row, layout_.bits, unpacked.size(), unpacked.data());
      return unpacked.data();
    }
    return nullptr;  // other types have whole bytes
  }

  TIFF* tiff_;
  const Layout& layout_;
  int interleaved_;
  std::uint64_t row_bytes_;
  std::vector<std::vector<std::uint8_t>> planes_ =
      std::vector<std::vector<std::uint8_t>>(layout_.separate ? layout_.channels() : 1);
  std::array<std::vector<T>, 4> unpacked_;
};

/// Table of the grey level for each stored value: the value itself, its complement (white is zero), scaled
/// from fewer bits, or the luma of a palette's colour.
std::vector<std::uint8_t> tone_curve(TIFF* tiff, const Layout& layout) {
  const int count = 1 << layout.bits, white = std::max(count - 1, 1);
  std::vector<std::uint8_t> curve(count);
  std::uint16_t *r = nullptr, *g = nullptr, *b = nullptr;
  if (layout.palette() && !TIFFGetField(tiff, TIFFTAG_COLORMAP, &r, &g, &b))
    throw damaged("TIFF", "its palette is missing");
  // Some programs write 8-bit colours to a palette that should have 16-bit ones.
  const auto fits = [count](const std::uint16_t* c) {
    return std::all_of(c, c + count, [](auto v) { return v < 256; });
  };
  const int shift = layout.palette() && fits(r) && fits(g) && fits(b) ? 0 : 8;
  for (int i = 0; i < count; ++i) {
    const int scaled = i * 255 / white;
    if (layout.palette())
      curve[i] = luma<std::uint8_t>(r[i] >> shift, g[i] >> shift, b[i] >> shift);
    else
      curve[i] = static_cast<std::uint8_t>(layout.white_is_zero() ? 255 - scaled : scaled);
  }
  return curve;
}

/// Reads strips straight into the image; rows of plain grey have the same layout in both.
template <typename T>
void read_strips_in_place(TIFF* tiff, const Layout& layout, Image& image) {
  for (std::uint32_t y = 0; y < layout.height; y += layout.block_height) {
    const auto rows = std::min(layout.block_height, layout.height - y);
    const auto bytes = static_cast<tmsize_t>(sizeof(T) * rows * layout.width);
    T* target = image.row<T>(static_cast<int>(y));
    check_read(TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, y, 0), target, bytes), bytes);
  }
}

template <typename T, typename Out>
void read_blocks(TIFF* tiff, const Layout& layout, Image& image) {
  Block<T> block(tiff, layout);
  for (std::uint32_t y = 0; y < layout.height; y += layout.block_height)
    for (std::uint32_t x = 0; x < layout.width; x += layout.block_width) {
      block.read(x, y);
      const std::uint32_t columns = std::min(layout.block_width, layout.width - x);
      const std::uint32_t rows = std::min(layout.block_height, layout.height - y);
      for (std::uint32_t r = 0; r < rows; ++r) {
        Out* out = image.row<Out>(static_cast<int>(y + r)) + x;
        if constexpr (std::is_unsigned_v<T> && std::is_same_v<T, Out>)
          if (layout.inks()) {
            grey_row_of_inks(block.row(r), static_cast<int>(columns), out);
            continue;
          }
        grey_row(block.row(r), static_cast<int>(columns), out);
      }
    }
}

/// Reads a page. T: element type in the file; Out: element type of the image.
template <typename T, typename Out>
Image read_as(TIFF* tiff, const Layout& layout, ScalarType type) {
  Image image({static_cast<int>(layout.width), static_cast<int>(layout.height)}, type);
  if (std::is_same_v<T, Out> && !layout.tiled && layout.samples == 1 && layout.bits == 8 * sizeof(T))
    read_strips_in_place<T>(tiff, layout, image);
  else
    read_blocks<T, Out>(tiff, layout, image);
  return image;
}

template <typename T, typename Map>
void for_each_element(Image& image, const Map& map) {
  for (int y = 0; y < image.height(); ++y)
    std::transform(image.row<T>(y), image.row<T>(y) + image.width(), image.row<T>(y), map);
}

/// Reads elements that become float: they are signed, deeper than 16 bits or not whole numbers.
Image read_float_page(TIFF* tiff, const Layout& layout) {
  constexpr ScalarType kFloat = ScalarType::f32;
  if (layout.is_float()) {
    if (layout.bits == 64) return read_as<double, float>(tiff, layout, kFloat);
    return layout.bits == 32 ? read_as<float, float>(tiff, layout, kFloat)
                             : read_as<Half, float>(tiff, layout, kFloat);
  }
  if (!layout.is_signed()) return read_as<std::uint32_t, float>(tiff, layout, kFloat);
  if (layout.bits == 32) return read_as<std::int32_t, float>(tiff, layout, kFloat);
  return layout.bits == 16 ? read_as<std::int16_t, float>(tiff, layout, kFloat)
                           : read_as<std::int8_t, float>(tiff, layout, kFloat);
}

Image read_page(TIFF* tiff, const Layout& layout) {
  if (layout.is_float() || layout.is_signed() || layout.bits > 16) return read_float_page(tiff, layout);
  if (layout.bits > 8) {
    Image image = read_as<std::uint16_t, std::uint16_t>(tiff, layout, ScalarType::u16);
    if (layout.bits < 16) image.set_bit_depth(layout.bits);
    if (layout.white_is_zero())
      for_each_element<std::uint16_t>(image, [white = (1 << layout.bits) - 1](auto v) { return white - v; });
    return image;
  }
  Image image = read_as<std::uint8_t, std::uint8_t>(tiff, layout, ScalarType::u8);
  if (layout.bits < 8 || layout.palette() || layout.white_is_zero())
    for_each_element<std::uint8_t>(image, [curve = tone_curve(tiff, layout)](auto v) { return curve[v]; });
  return image;
}

/// Number of the sample that holds the opacity; 0 if there is none.
int alpha_sample(TIFF* tiff, const Layout& layout) {
  std::uint16_t count = 0;
  const std::uint16_t* kinds = nullptr;
  if (!TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) || count >= layout.samples) return 0;
  for (std::uint16_t i = 0; i < count; ++i)
    if (kinds[i] == EXTRASAMPLE_ASSOCALPHA || kinds[i] == EXTRASAMPLE_UNASSALPHA)
      return layout.samples - count + i;
  return 0;
}

/// True for programs that store 0 for the outside of a mask and show it white: ImageJ by its inverting table,
/// tifffile for arrays of booleans.
bool stores_masks_inverted(TIFF* tiff) {
  return tiff_text(tiff, TIFFTAG_IMAGEDESCRIPTION).starts_with("ImageJ=") ||
         tiff_text(tiff, TIFFTAG_SOFTWARE).starts_with("tifffile");
}

void check_page(const TiffFile& file, const Layout& layout, ImageBuffers& buffers) {
  check_layout(layout);
  check_compression(file.tiff(), layout);
  check_plausible(layout.width, layout.height, file.size());
  check_block_size(file.tiff(), layout, file.size());
  check_blocks(file.tiff(), layout, file.size());
  check_deflated(file.tiff(), layout, buffers);
}

Image decode_page(TiffFile& file, const TiffPage& page, ImageBuffers& buffers, Content content) {
  file.go_to(page);
  Layout layout = read_layout(file.tiff());
  check_page(file, layout, buffers);
  const auto orientation = tiff_tag(file.tiff(), TIFFTAG_ORIENTATION, std::uint16_t{ORIENTATION_TOPLEFT});
  if (content == Content::mask && layout.white_is_zero() && stores_masks_inverted(file.tiff()))
    layout.photometric = PHOTOMETRIC_MINISBLACK;
  if (content == Content::alpha) {
    layout.first = alpha_sample(file.tiff(), layout);
    layout.photometric = PHOTOMETRIC_MINISBLACK;
    if (layout.first == 0) return {};
  }
  file.forget_warnings();  // about the directory, such as unknown tags
  file.shift_reads(page.shift);
  Image image = read_page(file.tiff(), layout);
  if (file.warned()) throw damaged("TIFF", "its image data cannot be decoded without errors");
  return oriented(std::move(image), orientation);
}

}  // namespace

std::vector<TiffPage> pages_of_tiff(const std::filesystem::path& path) {
  TiffFile file(path);
  return tiff_pages(file);
}

bool is_lossy_tiff(const std::filesystem::path& path) {
  TiffFile file(path);
  file.go_to(tiff_pages(file).front());
  const auto compression = tiff_tag(file.tiff(), TIFFTAG_COMPRESSION, std::uint16_t{COMPRESSION_NONE});
  return compression == COMPRESSION_JPEG || compression == COMPRESSION_OJPEG ||
         compression == COMPRESSION_WEBP;
}

Image decode_tiff(const std::filesystem::path& path, const TiffPage& page, ImageBuffers& buffers,
                  Content content) {
  TiffFile file(path);
  return decode_page(file, page, buffers, content);
}

Image decode_first_page(const std::filesystem::path& path, ImageBuffers& buffers, Content content) {
  TiffFile file(path);
  return decode_page(file, tiff_pages(file).front(), buffers, content);
}

}  // namespace dic::image
