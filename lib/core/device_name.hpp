#pragma once

#include <string>
#include <vector>

namespace dic {

/// What a device string of the options says.
struct DeviceName {
  std::string backend;        ///< "cpu", "cuda", "opencl"
  std::vector<int> ordinals;  ///< the GPUs, or devices of OpenCL, asked for; empty = all
};

/// Understands "cpu", "cuda" (the first GPU), "cuda:N", "cuda:N,M" and "cuda:all", and the same of "opencl";
/// throws UsageError.
DeviceName parse_device(const std::string& text);
/// The same for tracking and refinement, which OpenCL does not have: it throws UsageError for "opencl".
DeviceName parse_tracking_device(const std::string& text);

}  // namespace dic
