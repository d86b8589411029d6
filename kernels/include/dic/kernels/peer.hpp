#pragma once

#include <cstddef>
#include <dic/kernels/device.hpp>

namespace dic::kernels {

/// Allows the current device to read and write the memory of another one. Returns whether the machine
/// supports it; copies between the two are then direct instead of through the host.
bool allow_peer_access(int other);
/// Queues a copy from device memory to device memory of the same or of another device.
void copy_between(void* to, const void* from, std::size_t bytes, StreamHandle stream);

}  // namespace dic::kernels
