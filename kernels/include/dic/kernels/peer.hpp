#pragma once

#include <cstddef>
#include <dic/kernels/device.hpp>

namespace dic::kernels {

/// Lets the current device read and write the memory of another, if the machine can, and says whether it can;
/// copies between them then go directly instead of through the host.
bool allow_peer_access(int other);
/// Queues a copy from and to device memory, be it of one device or of two.
void copy_between(void* to, const void* from, std::size_t bytes, StreamHandle stream);

}  // namespace dic::kernels
