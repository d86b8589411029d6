#pragma once

#include <dic/kernels/device.hpp>

namespace dic::track::cuda {

/// Events of a GPU that the others wait for in a halo exchange.
struct HaloEvents {
  kernels::Event results_written;  ///< results of own points are written
  kernels::Event halo_read;        ///< the points around its own are read
};

}  // namespace dic::track::cuda
