#pragma once

#include <cstdint>
#include <dic/shared/correlation.hpp>

namespace dic::kernels {

/// Subsets and the windows in which they are searched; device memory.
struct SearchWindows {
  PatchPosition* references = nullptr;  ///< [count]: top-left pixels of the subsets
  PatchPosition* windows = nullptr;     ///< [count]: top-left pixels of the windows
  std::int64_t count = 0;
  int size = 0;   ///< side of a subset, px
  int range = 0;  ///< px by which a window is larger than a subset on every side
};

}  // namespace dic::kernels
