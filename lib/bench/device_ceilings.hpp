#pragma once

#include <dic/bench.hpp>
#include <vector>

namespace dic::bench {

/// The ceilings of the GPU number `ordinal`. Throws DeviceError. Defined by exactly one file of the build:
/// ceilings_cuda.cpp or ceilings_cuda_stub.cpp.
std::vector<Ceiling> cuda_ceilings(int ordinal, int repeats);

}  // namespace dic::bench
