#pragma once

#include <cstddef>
#include <memory>

#include "correlate/backend.hpp"

namespace dic::correlate::opencl {

/// Device memory for the sums, and for the references, of a part of a job, bytes each.
constexpr std::size_t kPartBytes = std::size_t{256} << 20;

/// Opens device opencl:NUMBER. pool: host threads, which score; lives longer. Throws DeviceError.
std::unique_ptr<Backend> open(int number, core::ThreadPool& pool, std::size_t part_bytes = kPartBytes);

}  // namespace dic::correlate::opencl
