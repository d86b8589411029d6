#pragma once

#include <cstdint>

namespace dic {

/// Noise of pixels of about the same grey level, from differences of frames at rest.
struct NoiseAtGrey {
  double grey = 0;   ///< mean of the pixels, grey levels
  double noise = 0;  ///< standard deviation of one image, grey levels
  std::int64_t pixels = 0;
};

}  // namespace dic
