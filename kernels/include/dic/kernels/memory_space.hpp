#pragma once

namespace dic::kernels {

/// Does the pointer lead into the memory of a GPU, rather than the host's? `upload` of rows copies from both.
/// Where there is no GPU: no.
bool is_device_memory(const void* memory);

}  // namespace dic::kernels
