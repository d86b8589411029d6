#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <dic/image.hpp>
#include <filesystem>
#include <span>

namespace dic::image {

/// How stored pixels are turned for display, numbered as in EXIF and TIFF: 1 = as stored, 2 mirrored, 3 by
/// 180 degrees, 4 upside down, 5 transposed, 6 by 90 degrees clockwise, 7 transposed about the other
/// diagonal, 8 by 90 degrees counter-clockwise.
using Orientation = int;
inline constexpr Orientation kAsStored = 1;

/// The image as it is to be displayed. Numbers other than 2 to 8 leave it as it is.
DIC_INTERNAL_API Image oriented(Image image, Orientation orientation);

/// The orientation in a block of EXIF data, which has the structure of a TIFF; kAsStored if there is none or
/// the block is damaged, because viewers show such a file as it is stored.
Orientation exif_orientation(std::span<const std::uint8_t> exif);

/// The orientation that an image file notes: JPEG, PNG and TIFF, whose head is all that is read. kAsStored if
/// it notes none, or cannot be read.
Orientation stored_orientation(const std::filesystem::path& path);

}  // namespace dic::image
