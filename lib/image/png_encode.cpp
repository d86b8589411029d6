#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "image/codecs.hpp"

namespace dic::image {
namespace {

std::uint8_t* put_big_endian(std::uint8_t* out, std::size_t value) {
  for (const int shift : {24, 16, 8, 0}) *out++ = static_cast<std::uint8_t>(value >> shift);
  return out;
}

/// Writes length, type and checksum around the `size` bytes of data at `chunk` + 8. Returns the end.
std::uint8_t* frame_chunk(std::uint8_t* chunk, const char* type, std::size_t size) {
  std::memcpy(put_big_endian(chunk, size), type, 4);
  return put_big_endian(chunk + 8 + size, libdeflate_crc32(0, chunk + 4, size + 4));
}

std::uint8_t* put_header(std::uint8_t* chunk, const RasterFormat& image) {
  std::uint8_t* data = put_big_endian(chunk + 8, static_cast<std::size_t>(image.width));
  data = put_big_endian(data, static_cast<std::size_t>(image.height));
  // The values are: depth, RGB or grey, deflate, adaptive filters, not interlaced.
  const std::uint8_t rest[] = {static_cast<std::uint8_t>(image.type == ScalarType::u16 ? 16 : 8),
                               static_cast<std::uint8_t>(image.channels == 3 ? 2 : 0), 0, 0, 0};
  std::memcpy(data, rest, sizeof rest);
  return frame_chunk(chunk, "IHDR", 13);
}

/// The size of the differences of two rows: the sum of their absolute values as signed bytes.
int distance(std::span<const std::uint8_t> row, const std::uint8_t* neighbour) {
  int sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto up = static_cast<std::uint8_t>(row[i] - neighbour[i]),
               down = static_cast<std::uint8_t>(neighbour[i] - row[i]);
    sum += std::min(up, down);
  }
  return sum;
}

void subtract(std::span<const std::uint8_t> row, const std::uint8_t* neighbour, std::uint8_t* out) {
  for (std::size_t i = 0; i < row.size(); ++i) out[i] = static_cast<std::uint8_t>(row[i] - neighbour[i]);
}

/// Chooses for each row between two filters: differences to the left pixel or to the row above, whichever are
/// smaller. Average and Paeth would save 3 % of the size, but take as long as the compression.
class RowFilter {
 public:
  explicit RowFilter(const RasterFormat& image)
      : zeros_(image.pixel_bytes()), above_(zeros_ + image.row_bytes()), row_(above_) {}

  /// Memory for the next row, which must be filled in the byte order of the file.
  std::span<std::uint8_t> next_row() {
    above_.swap(row_);
    return std::span(row_).subspan(zeros_);
  }
  /// Filters that row. out: receives the number of the filter, then the filtered row.
  void write(std::uint8_t* out) const {
    const std::span row = std::span(row_).subspan(zeros_);
    const std::uint8_t *left = row_.data(), *above = above_.data() + zeros_;
    const bool is_like_above = distance(row, above) < distance(row, left);
    out[0] = is_like_above ? 2 : 1;
    subtract(row, is_like_above ? above : left, out + 1);
  }

 private:
  std::size_t zeros_;  ///< zero bytes before a row: the pixel to the left of its first one
  std::vector<std::uint8_t> above_, row_;
};

/// Converts a row to the byte order of the file, high byte first.
void to_file_order(std::span<std::uint8_t> row, ScalarType type) {
  if (type == ScalarType::u16 && std::endian::native == std::endian::little)
    for (std::size_t i = 0; i < row.size(); i += 2) std::swap(row[i], row[i + 1]);
}

std::span<const std::uint8_t> filtered(const RasterFormat& image, const RowWriter& write_row,
                                       Buffer& buffer) {
  const std::size_t filtered_bytes = 1 + image.row_bytes();
  const std::span<std::uint8_t> rows = buffer.get(filtered_bytes * image.height);
  RowFilter filter(image);
  for (int y = 0; y < image.height; ++y) {
    const std::span<std::uint8_t> row = filter.next_row();
    write_row(y, row);
    to_file_order(row, image.type);
    filter.write(rows.data() + y * filtered_bytes);
  }
  return rows;
}

}  // namespace

std::span<const std::uint8_t> encode_png(const RasterFormat& image, const RowWriter& write_row,
                                         ImageBuffers& buffers) {
  constexpr int kFastest = 1;
  constexpr std::size_t kFrames = 8 + 25 + 12 + 12;  // signature, header, frames of data and end
  constexpr std::size_t kLongestChunk = 0x7fffffff;
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(kFastest), libdeflate_free_compressor);
  if (!compressor) throw std::bad_alloc();
  const auto rows = filtered(image, write_row, buffers.unpacked);
  const std::size_t most = libdeflate_zlib_compress_bound(compressor.get(), rows.size());
  if (most > kLongestChunk) throw Refusal("is too large for a PNG of one piece; choose TIFF.");
  std::uint8_t* file = buffers.file.get(most + kFrames).data();
  const std::uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  std::memcpy(file, signature, sizeof signature);
  std::uint8_t* chunk = put_header(file + sizeof signature, image);
  const std::size_t packed =
      libdeflate_zlib_compress(compressor.get(), rows.data(), rows.size(), chunk + 8, most);
  const std::uint8_t* end = frame_chunk(frame_chunk(chunk, "IDAT", packed), "IEND", 0);
  return {file, end};
}

}  // namespace dic::image
