#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dic {

/// Progress of a long call.
struct Progress {
  std::string stage;      ///< "load", "prepare", "search", "refine", "strain", "write"
  int frame = 0;          ///< current frame, 1-based; 0 if frames do not apply
  int frames = 0;         ///< number of frames; 0 if unknown (video without a length)
  std::int64_t done = 0;  ///< points finished in the whole run
  double seconds = 0;     ///< seconds since the call began
};

/// Called from the thread that made the long call, never concurrently. May be empty.
using ProgressCallback = std::function<void(const Progress&)>;

}  // namespace dic
