#pragma once

#include <cstddef>
#include <memory>

#include "correlate/backend.hpp"

namespace dic::correlate::opencl {

/// Device memory for the sums, and for the references, of a part of a job, bytes each.
constexpr std::size_t kPartBytes = std::size_t{256} << 20;

/// Opens device opencl:NUMBER. threads: host threads, which score; 0 = one per core. Throws DeviceError.
std::unique_ptr<Backend> open(int number, int threads, std::size_t part_bytes = kPartBytes);

}  // namespace dic::correlate::opencl
