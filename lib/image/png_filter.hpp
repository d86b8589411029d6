#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dic {

/// Undoes the filter of one row of a PNG (PNG specification, section 9). `above`: the row before, as bytes of
/// the same length, zeros for the first. `pixel_bytes`: bytes of a pixel, 1 to 8. `row` must not overlap the
/// others. Returns false for a filter that does not exist.
bool png_unfilter(std::span<const std::uint8_t> filtered, int filter, const std::uint8_t* above,
                  std::size_t pixel_bytes, std::uint8_t* row);

}  // namespace dic
