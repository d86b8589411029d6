#pragma once

#include <cstddef>
#include <cstdint>

namespace dic::core {

/// Copies rows past the caches (non-temporal stores) and fills the gap up to the next row with zeros: a GPU
/// reads data from the cache of a core at a third of the link's speed, and its other transfers wait
/// meanwhile. to: aligned to 64 bytes; pitch: bytes from row to row, a multiple of 64.
void copy_rows_uncached(std::byte* to, std::size_t pitch, const std::byte* from, std::ptrdiff_t stride,
                        std::size_t row_bytes, std::int64_t rows);

}  // namespace dic::core
