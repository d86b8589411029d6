#pragma once

namespace dic::kernels {

/// Does the pointer point to memory of a GPU? False where there is no GPU. `upload` of rows copies from both.
bool is_device_memory(const void* memory);
/// The GPU that it is on. Throws DeviceError for other memory.
int device_of(const void* memory);
/// Waits for the work that was queued so far in the default stream of a GPU (the legacy one).
void wait_for_default_stream(int device);

}  // namespace dic::kernels
