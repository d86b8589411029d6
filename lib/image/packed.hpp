#pragma once

#include <cstddef>
#include <cstdint>

namespace dic::image {

/// Unpacks samples of `bits` bits (up to 24), most significant bit first, without gaps.
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

}  // namespace dic::image
