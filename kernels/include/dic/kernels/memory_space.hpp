#pragma once

namespace dic::kernels {

/// Does the pointer point to memory of a GPU? False where there is no GPU. `upload` of rows copies from both.
bool is_device_memory(const void* memory);

}  // namespace dic::kernels
