#pragma once

#include <algorithm>
#include <dic/correlate.hpp>
#include <dic/info.hpp>
#include <string>
#include <vector>

#include "core/cuda_devices.hpp"
#include "support/requirements.hpp"

namespace dic::test {

/// Skips the test if the backend has no device.
inline void skip_without_device_of(const std::string& backend) {
  std::string reason;
  if (backend == "cuda" && core::cuda_devices(reason).empty()) return skip_without_gpu(reason);
  if (backend == "opencl")
    if (const OpenClInfo opencl = opencl_info(); opencl.devices.empty()) skip_without_opencl(opencl.note);
}

/// The backends of this build other than the CPU.
inline std::vector<std::string> other_backends() {
  std::vector<std::string> names;
  for (const CorrelateVariant& variant : correlate_variants())
    if (variant.backend != "cpu" && std::ranges::find(names, variant.backend) == names.end())
      names.push_back(variant.backend);
  return names;
}

}  // namespace dic::test
