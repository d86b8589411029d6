#include <libdeflate.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "image/codecs.hpp"

namespace dic {
namespace {

void append_big_endian(std::vector<std::uint8_t>& bytes, std::size_t value) {
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

void append_chunk(std::vector<std::uint8_t>& file, const char* type, std::span<const std::uint8_t> data) {
  append_big_endian(file, data.size());
  const std::size_t checked = file.size();
  file.insert(file.end(), type, type + 4);
  file.insert(file.end(), data.begin(), data.end());
  append_big_endian(file, libdeflate_crc32(0, file.data() + checked, file.size() - checked));
}

std::vector<std::uint8_t> header_of(const Raster& image) {
  std::vector<std::uint8_t> header;
  append_big_endian(header, static_cast<std::size_t>(image.width));
  append_big_endian(header, static_cast<std::size_t>(image.height));
  header.push_back(image.type == ScalarType::u16 ? 16 : 8);
  header.push_back(image.channels == 3 ? 2 : 0);  // RGB or grey
  header.insert(header.end(), 3, 0);              // deflate, adaptive filters, not interlaced
  return header;
}

/// Writes row - neighbour and returns how large the differences are.
int subtract(std::span<const std::uint8_t> row, const std::uint8_t* neighbour, std::uint8_t* out) {
  int sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    out[i] = static_cast<std::uint8_t>(row[i] - neighbour[i]);
    sum += std::abs(static_cast<std::int8_t>(out[i]));
  }
  return sum;
}

/// Chooses for each row between two filters: differences to the left or to the row above, whichever are
/// smaller. Average and Paeth would gain 3 % of the size and take as long as the compression.
class RowFilter {
 public:
  RowFilter(std::size_t row_bytes, std::size_t pixel_bytes)
      : pixel_bytes_(pixel_bytes), above_(row_bytes), up_(row_bytes), left_(pixel_bytes + row_bytes) {}

  /// out: the number of the filter, then the filtered row.
  void write(std::span<const std::uint8_t> row, std::uint8_t* out) {
    std::memcpy(left_.data() + pixel_bytes_, row.data(), row.size());
    const int to_left = subtract(row, left_.data(), out + 1);
    const int to_above = subtract(row, above_.data(), up_.data());
    out[0] = to_above < to_left ? 2 : 1;
    if (to_above < to_left) std::memcpy(out + 1, up_.data(), row.size());
    std::memcpy(above_.data(), row.data(), row.size());
  }

 private:
  std::size_t pixel_bytes_;
  std::vector<std::uint8_t> above_, up_, left_;  // left_: the row behind one pixel of zeros
};

/// The samples of a row in the order of the file: high byte first.
void copy_row(const Raster& image, int y, std::span<std::uint8_t> row) {
  std::memcpy(row.data(), static_cast<const std::uint8_t*>(image.data) + y * row.size(), row.size());
  if (image.type == ScalarType::u16 && std::endian::native == std::endian::little)
    for (std::size_t i = 0; i < row.size(); i += 2) std::swap(row[i], row[i + 1]);
}

std::vector<std::uint8_t> filtered(const Raster& image) {
  const std::size_t pixel_bytes = (image.type == ScalarType::u16 ? 2 : 1) * image.channels;
  std::vector<std::uint8_t> row(pixel_bytes * image.width);
  std::vector<std::uint8_t> rows((row.size() + 1) * image.height);
  RowFilter filter(row.size(), pixel_bytes);
  for (int y = 0; y < image.height; ++y) {
    copy_row(image, y, row);
    filter.write(row, rows.data() + y * (row.size() + 1));
  }
  return rows;
}

std::vector<std::uint8_t> deflate(std::span<const std::uint8_t> bytes) {
  constexpr int kFastest = 1;
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(kFastest), libdeflate_free_compressor);
  if (!compressor) throw std::bad_alloc();
  std::vector<std::uint8_t> packed(libdeflate_zlib_compress_bound(compressor.get(), bytes.size()));
  packed.resize(
      libdeflate_zlib_compress(compressor.get(), bytes.data(), bytes.size(), packed.data(), packed.size()));
  return packed;
}

}  // namespace

std::vector<std::uint8_t> encode_png(const Raster& image) {
  constexpr std::size_t kLongestChunk = std::size_t{1} << 30;
  const std::vector<std::uint8_t> packed = deflate(filtered(image));
  std::vector<std::uint8_t> file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  file.reserve(packed.size() + 100);
  append_chunk(file, "IHDR", header_of(image));
  for (std::span<const std::uint8_t> rest = packed; !rest.empty();) {
    const auto data = rest.first(std::min(rest.size(), kLongestChunk));
    append_chunk(file, "IDAT", data);
    rest = rest.subspan(data.size());
  }
  append_chunk(file, "IEND", {});
  return file;
}

}  // namespace dic
