#pragma once

#include <cstddef>

#include "dic/refine.hpp"

namespace dic {

/// Some rows of up to 16 columns of an image, filtered after the band above them or before it.
struct ColumnBand {
  float* out = nullptr;  ///< the first pixel
  std::ptrdiff_t stride = 0;
  int columns = 0, rows = 0;
  bool is_first = false;
  int rows_below = 0;  ///< from the next band to the last
  Interpolation interpolation{};
};

}  // namespace dic
