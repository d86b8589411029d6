#pragma once

namespace dic::kernels {

/// True if the pointer points to memory of a GPU; false on machines without a GPU. `upload` of rows copies
/// from host and GPU memory.
bool is_device_memory(const void* memory);
/// The GPU that owns `memory`. Throws DeviceError for other memory.
int device_of(const void* memory);
/// Waits for the work that was queued so far in the (legacy) default stream of a GPU.
void wait_for_default_stream(int device);

}  // namespace dic::kernels
