#pragma once

#include <dic/kernels/device.hpp>

namespace dic::track::cuda {

/// What the other GPUs wait for in a halo exchange.
struct HaloEvents {
  kernels::Event results_written;  ///< of own points
  kernels::Event halo_read;        ///< of the points around them
};

}  // namespace dic::track::cuda
