#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/image.hpp>
#include <span>

namespace dic::live {

/// The grey image in the buffer of a camera. format: number of a GenICam pixel format (PFNC). Grey of 8 to 16
/// bits, packed or not, and RGB and BGR of 8 bits, which become luma. Throws DeviceError for other formats,
/// and if the buffer is too small.
Image image_of(std::span<const std::uint8_t> buffer, Size size, std::uint32_t format);

}  // namespace dic::live
