#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/image.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "image/buffer.hpp"
#include "image/raster.hpp"

namespace dic::image {

struct PgmHeader {
  int width = 0, height = 0;  ///< px
  bool is_16_bit = false;
  int bit_depth = 0;      ///< 9 to 15; 0 = all bits of the type
  std::size_t bytes = 0;  ///< size of the header
};

/// Parses the header of a PGM as cameras write it: binary (P5), without comments, with grey up to 255, 65535,
/// or the largest value of 9 to 15 bits. Returns nothing for other files.
std::optional<PgmHeader> plain_pgm(std::string_view start);

/// Reads the pixels of a PGM. read_pixels: fills the bytes with those behind the header. Throws Refusal.
Image read_pgm(const PgmHeader& header, std::uint64_t file_bytes,
               const std::function<void(std::span<std::uint8_t>)>& read_pixels);

/// Encodes grey of 8 or 16 bits.
std::span<const std::uint8_t> encode_pgm(const RasterFormat& image, const RowWriter& write_row,
                                         Buffer& buffer);

}  // namespace dic::image
