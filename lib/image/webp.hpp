#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "image/orientation.hpp"

namespace dic::image {

/// Throws Refusal if the canvas of a WebP file is too large for the file: OpenCV allocates it whole.
void check_webp(std::span<const std::uint8_t> bytes);
/// The orientation of a WebP file; kAsStored for files of other formats.
Orientation webp_orientation(std::span<const std::uint8_t> bytes);
/// True if a file begins as a WebP with pixels that are compressed with loss. `start` needs 64 bytes.
bool is_lossy_webp(std::string_view start);

}  // namespace dic::image
