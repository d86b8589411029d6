#pragma once

#include <string>
#include <vector>

namespace dic {

/// What a device string of the options says.
struct DeviceName {
  std::string backend;        ///< "cpu", "cuda"
  std::vector<int> ordinals;  ///< the GPUs asked for; empty = all
};

/// Understands "cpu", "cuda" (the first GPU), "cuda:N", "cuda:N,M" and "cuda:all"; throws UsageError.
DeviceName parse_device(const std::string& text);

}  // namespace dic
