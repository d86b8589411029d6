#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/image.hpp>
#include <dic/shared/image_view.hpp>

/// Reduced images for the coarse-to-fine search: 8 bit, halved from level to level. Empty images queue no
/// work.
namespace dic::kernels {

/// Smallest and largest grey value of some rows of an image. The extrema of several bands of an image are
/// stored one after the other.
struct Extrema {
  double low, high;
};
/// Number of extrema of an image with `height` rows.
constexpr int extrema_of_rows(int height) { return height < 512 ? height : 512; }
/// Queues the extrema of an image of finite values: extrema_of_rows(in.height) of them.
void launch_extrema(const DeviceImage& in, ScalarType type, Extrema* extrema, StreamHandle stream);

/// Queues the image as 8 bit, the range of all `count` extrema stretched to 0 .. 255 (dic::GreyStretch): in
/// full size, and in the half size that launch_halved would make of the full size. A result whose data is
/// null is not written. Every band of an image except the last has an even number of rows.
void launch_stretched(const DeviceImage& in, ScalarType type, const Extrema* extrema, int count,
                      DevicePlane<std::uint8_t> full, DevicePlane<std::uint8_t> half, StreamHandle stream);

/// Queues an 8-bit image in half its size, the means of 2x2 px; an odd last row or column is dropped.
void launch_halved(const DeviceImage& in, DevicePlane<std::uint8_t> out, StreamHandle stream);

}  // namespace dic::kernels
