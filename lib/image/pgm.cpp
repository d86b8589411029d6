#include "image/pgm.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>
#include <utility>

#include "image/byte_order.hpp"
#include "image/codecs.hpp"

namespace dic::image {
namespace {

/// Parses white space and a number at text[at]; moves `at` behind them. Returns 0 if there is no number.
int number_at(std::string_view text, std::size_t& at) {
  const std::size_t first = at;
  while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r'))
    ++at;
  int number = 0;
  if (at == first) return 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  at = static_cast<std::size_t>(end - text.data());
  return error == std::errc() ? number : 0;
}

}  // namespace

std::optional<PgmHeader> plain_pgm(std::string_view start) {
  PgmHeader header;
  std::size_t at = 2;  // skips P5
  header.width = number_at(start, at);
  header.height = number_at(start, at);
  const int white = number_at(start, at);
  header.is_16_bit = white > 255;
  const int bits = std::bit_width(static_cast<unsigned>(white));
  if (header.is_16_bit && bits < 16) header.bit_depth = bits;
  header.bytes = at + 1;  // includes one more white space
  const bool uses_whole_bits = white >= 255 && white <= 65535 && white == (1 << bits) - 1;
  const bool is_plain = header.width > 0 && header.height > 0 && uses_whole_bits;
  return is_plain && header.bytes < start.size() ? std::optional(header) : std::nullopt;
}

Image read_pgm(const PgmHeader& header, std::uint64_t file_bytes,
               const std::function<void(std::span<std::uint8_t>)>& read_pixels) {
  check_size(header.width, header.height);
  const std::uint64_t bytes = std::uint64_t{header.is_16_bit ? 2u : 1u} * header.width * header.height;
  if (bytes > file_bytes - header.bytes) throw damaged("PGM", "its image data are incomplete");
  const auto type = header.is_16_bit ? ScalarType::u16 : ScalarType::u8;
  Image image({header.width, header.height}, type, header.bit_depth);
  read_pixels({image.row<std::uint8_t>(0), bytes});
  if (header.is_16_bit) swap_big_endian({image.row<std::uint16_t>(0), bytes / 2});
  return image;
}

std::span<const std::uint8_t> encode_pgm(const RasterFormat& image, const RowWriter& write_row,
                                         Buffer& buffer) {
  const bool is_16_bit = image.type == ScalarType::u16;
  const int bits = is_16_bit && image.bit_depth > 8 ? image.bit_depth : is_16_bit ? 16 : 8;
  const std::string header = "P5\n" + std::to_string(image.width) + " " + std::to_string(image.height) +
                             "\n" + std::to_string((1 << bits) - 1) + "\n";
  const std::span<std::uint8_t> file = buffer.get(header.size() + image.row_bytes() * image.height);
  std::ranges::copy(header, file.begin());
  for (int y = 0; y < image.height; ++y) {
    const std::span<std::uint8_t> row =
        file.subspan(header.size() + y * image.row_bytes(), image.row_bytes());
    write_row(y, row);
    if (!is_16_bit || std::endian::native == std::endian::big) continue;
    for (std::size_t k = 0; k + 1 < row.size(); k += 2) std::swap(row[k], row[k + 1]);  // may be unaligned
  }
  return file;
}

}  // namespace dic::image
