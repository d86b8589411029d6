#pragma once

#include <dic/export.hpp>
#include <string>
#include <vector>

namespace dic::core {

/// The parts of a device string such as "cuda:0,1".
struct DeviceName {
  std::string backend;        ///< "cpu", "cuda", "opencl"
  std::vector<int> ordinals;  ///< numbers of the requested GPUs or OpenCL devices; empty = all
};

/// Parses "cpu", "cuda" (the first GPU), "cuda:N", "cuda:N,M", "cuda:all" and the same forms of "opencl".
/// Throws UsageError for any other text.
DIC_INTERNAL_API DeviceName parse_device(const std::string& text);
/// Like parse_device(), for tracking and refinement: throws UsageError for "opencl", which cannot do these.
DeviceName parse_tracking_device(const std::string& text);

}  // namespace dic::core
