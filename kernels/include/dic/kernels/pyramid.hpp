#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/image.hpp>
#include <dic/kernels/device.hpp>
#include <dic/kernels/picture.hpp>

/// Reduced pictures for the coarse-to-fine search: 8 bit, halved from level to level. Empty pictures are done
/// at once.
namespace dic::kernels {

/// Bytes of device memory that launch_stretched works in.
constexpr std::size_t stretch_workspace_bytes = 8192;

/// Queues the picture (finite values) as 8 bit, its range stretched to 0 .. 255 (dic::Stretch): in full size,
/// and in half size as launch_halved makes it of that. A result without data is not wanted.
void launch_stretched(const DevicePicture& in, ScalarType type, DevicePlane<std::uint8_t> full,
                      DevicePlane<std::uint8_t> half, void* workspace, StreamHandle stream);

/// Queues an 8-bit picture in half its size, the means of 2x2 px; an odd last row or column is dropped.
void launch_halved(const DevicePicture& in, DevicePlane<std::uint8_t> out, StreamHandle stream);

}  // namespace dic::kernels
