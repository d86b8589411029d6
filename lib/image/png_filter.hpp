#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dic::image {

/// Undoes the filter of one row of a PNG (PNG specification, section 9). `above`: the unfiltered row above,
/// as long as this one; zeros for the first row. `pixel_bytes`: bytes of a pixel, 1 to 8. `row` must not
/// overlap the others. Returns false for an unknown filter.
bool png_unfilter(std::span<const std::uint8_t> filtered, int filter, const std::uint8_t* above,
                  std::size_t pixel_bytes, std::uint8_t* row);

}  // namespace dic::image
