#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace dic::image {

/// Converts samples between the byte order of PNG and PGM (high byte first) and that of this machine.
inline void swap_big_endian(std::span<std::uint16_t> samples) {
  if constexpr (std::endian::native == std::endian::little)
    for (std::uint16_t& value : samples) value = static_cast<std::uint16_t>(value << 8 | value >> 8);
}

}  // namespace dic::image
