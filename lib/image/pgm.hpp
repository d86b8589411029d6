#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/image.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace dic {

struct PgmHeader {
  int width = 0, height = 0;  ///< px
  bool is_16_bit = false;
  std::size_t bytes = 0;  ///< of the header
};

/// Nothing where the file does not begin like those that cameras write: a binary PGM (P5) without comments,
/// with grey up to 255 or 65535.
std::optional<PgmHeader> plain_pgm(std::string_view start);

/// read_pixels: fills the bytes with those behind the header. Throws Refusal.
Image read_pgm(const PgmHeader& header, std::uint64_t file_bytes,
               const std::function<void(std::span<std::uint8_t>)>& read_pixels);

}  // namespace dic
