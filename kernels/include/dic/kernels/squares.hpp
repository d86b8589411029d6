#pragma once

#include <cstddef>
#include <dic/kernels/device.hpp>
#include <dic/kernels/image.hpp>

/// Parts of an image in device memory, for a host that needs little of it.
namespace dic::kernels {

/// The top left pixel of a square.
struct Corner {
  int x, y;
};

/// Queues copies of `count` squares of `side` px, one below the other, without gaps: [count * side][side]
/// elements of 1, 2, 4 or 8 bytes. All squares lie in the image. corners and out: device memory.
void launch_copy_squares(const DeviceImage& in, std::size_t element_bytes, const Corner* corners, int count,
                         int side, void* out, StreamHandle stream);

}  // namespace dic::kernels
