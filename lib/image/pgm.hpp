#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/image.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace dic::image {

struct PgmHeader {
  int width = 0, height = 0;  ///< px
  bool is_16_bit = false;
  std::size_t bytes = 0;  ///< size of the header
};

/// Parses the header of a PGM as cameras write it: binary (P5), without comments, with grey up to 255 or
/// 65535. Returns nothing for other files.
std::optional<PgmHeader> plain_pgm(std::string_view start);

/// Reads the pixels of a PGM. read_pixels: fills the bytes with those behind the header. Throws Refusal.
Image read_pgm(const PgmHeader& header, std::uint64_t file_bytes,
               const std::function<void(std::span<std::uint8_t>)>& read_pixels);

}  // namespace dic::image
