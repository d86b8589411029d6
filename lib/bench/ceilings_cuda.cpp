#include <dic/kernels/ceilings.hpp>

#include "bench/device_ceilings.hpp"

namespace dic::bench {

std::vector<Ceiling> cuda_ceilings(int ordinal, int repeats) {
  const kernels::Device device = kernels::find_device(ordinal);
  const kernels::DeviceScope scope(device.index);
  std::vector<Ceiling> found;
  for (const kernels::Ceiling& ceiling : kernels::measure_ceilings(device, repeats))
    found.push_back({std::string(ceiling.name), ceiling.is_bandwidth ? "B/s" : "op/s", ceiling.per_second});
  return found;
}

}  // namespace dic::bench
