#include <libdeflate.h>
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <type_traits>

#include "image/codecs.hpp"
#include "image/grey.hpp"

namespace dic::image {
namespace {

using Handle = std::unique_ptr<TIFF, decltype(&TIFFClose)>;

/// Ignores errors, which return values also show. Without this handler libtiff would write to stderr.
int ignore_message(TIFF*, void*, const char*, const char*, va_list) { return 1; }

/// Notes a warning: while pixels are decoded, it means that libtiff invented some of them.
int note_warning(TIFF*, void* warned, const char*, const char*, va_list) {
  *static_cast<bool*>(warned) = true;
  return 1;
}

Handle open(const std::filesystem::path& path, bool& warned) {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(TIFFOpenOptionsAlloc(),
                                                                                 TIFFOpenOptionsFree);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), ignore_message, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), note_warning, &warned);
  // "m" prevents mapping the file into memory: if the file then shrinks, the process is killed.
  return {TIFFOpenExt(path.c_str(), "rm", options.get()), TIFFClose};
}

template <typename T>
T tag(TIFF* tiff, std::uint32_t name, T fallback) {
  T value{};
  return TIFFGetFieldDefaulted(tiff, name, &value) ? value : fallback;
}

struct Layout {
  std::uint32_t width = 0, height = 0;
  std::uint32_t block_width = 0, block_height = 0;  // size of a strip or a tile
  std::uint16_t bits = 0, samples = 0, format = 0, photometric = 0;
  bool tiled = false, separate = false;

  bool colour() const { return photometric == PHOTOMETRIC_RGB; }
  bool palette() const { return photometric == PHOTOMETRIC_PALETTE; }
  /// Number of channels that are read; alpha and other extra samples are not read.
  int channels() const { return colour() ? 3 : 1; }
};

Layout read_layout(TIFF* tiff) {
  Layout layout;
  layout.width = tag(tiff, TIFFTAG_IMAGEWIDTH, 0u);
  layout.height = tag(tiff, TIFFTAG_IMAGELENGTH, 0u);
  layout.bits = tag(tiff, TIFFTAG_BITSPERSAMPLE, std::uint16_t{1});
  layout.samples = tag(tiff, TIFFTAG_SAMPLESPERPIXEL, std::uint16_t{1});
  layout.format = tag(tiff, TIFFTAG_SAMPLEFORMAT, std::uint16_t{SAMPLEFORMAT_UINT});
  const int guess = layout.samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  layout.photometric = tag(tiff, TIFFTAG_PHOTOMETRIC, static_cast<std::uint16_t>(guess));
  const auto compression = tag(tiff, TIFFTAG_COMPRESSION, std::uint16_t{COMPRESSION_NONE});
  if (compression == COMPRESSION_JPEG && layout.photometric == PHOTOMETRIC_YCBCR &&
      TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB))
    layout.photometric = PHOTOMETRIC_RGB;  // libtiff converts the colours
  layout.separate =
      tag(tiff, TIFFTAG_PLANARCONFIG, std::uint16_t{PLANARCONFIG_CONTIG}) == PLANARCONFIG_SEPARATE;
  layout.tiled = TIFFIsTiled(tiff);
  layout.block_width = layout.tiled ? tag(tiff, TIFFTAG_TILEWIDTH, 0u) : layout.width;
  layout.block_height = layout.tiled
                            ? tag(tiff, TIFFTAG_TILELENGTH, 0u)
                            : std::min(tag(tiff, TIFFTAG_ROWSPERSTRIP, layout.height), layout.height);
  return layout;
}

void check_layout(const Layout& layout) {
  check_size(layout.width, layout.height);
  check_size(layout.block_width, layout.block_height);
  const bool is_float = layout.format == SAMPLEFORMAT_IEEEFP && (layout.bits == 32 || layout.bits == 64);
  const bool is_unsigned = (layout.format == SAMPLEFORMAT_UINT || layout.format == SAMPLEFORMAT_VOID) &&
                           layout.bits >= 1 && layout.bits <= 16;
  if (!is_float && !is_unsigned)
    throw Refusal(
        "holds " + std::to_string(layout.bits) +
        "-bit elements of a type that is not supported; save it as unsigned 8 or 16 bit or as 32-bit "
        "float.");
  const auto p = layout.photometric;
  const bool grey = p == PHOTOMETRIC_MINISBLACK || p == PHOTOMETRIC_MINISWHITE;
  const bool palette = layout.palette() && is_unsigned && layout.bits <= 8;
  const bool colour = layout.colour() && layout.samples >= 3 && layout.bits >= 8;
  if (!grey && !palette && !colour)
    throw Refusal("is a TIFF in a colour space other than grey, RGB or palette; save it as one of these.");
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
  const bool is_packed = tag(tiff, TIFFTAG_COMPRESSION, std::uint16_t{COMPRESSION_NONE}) != COMPRESSION_NONE;
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

void check_read(tmsize_t got, tmsize_t expected) {
  if (got < expected) throw damaged("TIFF", "its image data are incomplete");
}

/// Checks deflated data: libtiff does not read the checksum at their end, and so misses wrong data before it.
void check_deflated(TIFF* tiff, const Layout& layout, ImageBuffers& buffers) {
  const auto compression = tag(tiff, TIFFTAG_COMPRESSION, std::uint16_t{COMPRESSION_NONE});
  const bool is_deflated = compression == COMPRESSION_ADOBE_DEFLATE || compression == COMPRESSION_DEFLATE;
  const auto order = tag(tiff, TIFFTAG_FILLORDER, std::uint16_t{FILLORDER_MSB2LSB});
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

/// Unpacks samples of `bits` bits, most significant bit first, without gaps.
template <typename T>
void unpack(const std::uint8_t* packed, int bits, std::size_t count, T* out) {
  std::uint32_t window = 0;
  int available = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (; available < bits; available += 8) window = window << 8 | *packed++;
    available -= bits;
    out[i] = static_cast<T>(window >> available & ((1u << bits) - 1));
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
      const auto plane = static_cast<std::uint16_t>(p);
      const auto got =
          layout_.tiled
              ? TIFFReadEncodedTile(tiff_, TIFFComputeTile(tiff_, x, y, 0, plane), planes_[p].data(), size)
              : TIFFReadEncodedStrip(tiff_, TIFFComputeStrip(tiff_, y, plane), planes_[p].data(), size);
      const auto rows = std::min(layout_.block_height, layout_.height - y);
      check_read(got, static_cast<tmsize_t>(rows * row_bytes_));
    }
  }

  Channels<T> row(std::uint32_t r) {
    Channels<T> channels{{}, interleaved_};
    for (int c = 0; c < 3; ++c) {
      const int channel = std::min(c, layout_.channels() - 1);
      const std::size_t plane = layout_.separate ? channel : 0;
      channels.rgb[c] = samples(plane, r) + (layout_.separate ? 0 : channel);
    }
    return channels;
  }

 private:
  const T* samples(std::size_t plane, std::uint32_t r) {
    const std::uint8_t* row = planes_[plane].data() + r * row_bytes_;
    if (layout_.bits == 8 * sizeof(T)) return reinterpret_cast<const T*>(row);
    auto& unpacked = unpacked_[plane];
    unpacked.resize(static_cast<std::size_t>(layout_.block_width) * interleaved_);
    unpack(row, layout_.bits, unpacked.size(), unpacked.data());
    return unpacked.data();
  }

  TIFF* tiff_;
  const Layout& layout_;
  int interleaved_;
  std::uint64_t row_bytes_;
  std::vector<std::vector<std::uint8_t>> planes_ =
      std::vector<std::vector<std::uint8_t>>(layout_.separate ? layout_.channels() : 1);
  std::array<std::vector<T>, 3> unpacked_;
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
      curve[i] =
          static_cast<std::uint8_t>(layout.photometric == PHOTOMETRIC_MINISWHITE ? 255 - scaled : scaled);
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
      for (std::uint32_t r = 0; r < rows; ++r)
        grey_row(block.row(r), static_cast<int>(columns), image.row<Out>(static_cast<int>(y + r)) + x);
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

Image read_page(TIFF* tiff, const Layout& layout) {
  if (layout.bits == 64) return read_as<double, float>(tiff, layout, ScalarType::f32);
  if (layout.bits == 32) return read_as<float, float>(tiff, layout, ScalarType::f32);
  if (layout.bits > 8) {
    Image image = read_as<std::uint16_t, std::uint16_t>(tiff, layout, ScalarType::u16);
    if (layout.bits < 16) image.set_bit_depth(layout.bits);
    if (layout.photometric == PHOTOMETRIC_MINISWHITE)
      for_each_element<std::uint16_t>(image, [white = (1 << layout.bits) - 1](auto v) { return white - v; });
    return image;
  }
  Image image = read_as<std::uint8_t, std::uint8_t>(tiff, layout, ScalarType::u8);
  if (layout.bits < 8 || layout.palette() || layout.photometric == PHOTOMETRIC_MINISWHITE)
    for_each_element<std::uint8_t>(image, [curve = tone_curve(tiff, layout)](auto v) { return curve[v]; });
  return image;
}

}  // namespace

Image decode_tiff(const std::filesystem::path& path, ImageBuffers& buffers) {
  bool warned = false;
  const Handle tiff = open(path, warned);
  if (!tiff) throw damaged("TIFF", "its directory cannot be read");
  const Layout layout = read_layout(tiff.get());
  check_layout(layout);
  const std::uint64_t file_bytes = std::filesystem::file_size(path);
  check_plausible(layout.width, layout.height, file_bytes);
  check_block_size(tiff.get(), layout, file_bytes);
  check_blocks(tiff.get(), layout, file_bytes);
  check_deflated(tiff.get(), layout, buffers);
  warned = false;  // forgets warnings about the directory, such as unknown tags
  Image image = read_page(tiff.get(), layout);
  if (warned) throw damaged("TIFF", "its image data cannot be decoded without errors");
  return image;
}

}  // namespace dic::image
