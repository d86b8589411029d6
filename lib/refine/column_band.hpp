#pragma once

#include <cstddef>

#include "dic/refine.hpp"

namespace dic::refine {

/// Rows of floats, `stride` floats apart.
struct InputRows {
  const float* first = nullptr;
  std::ptrdiff_t stride = 0;
};
struct OutputRows {
  float* first = nullptr;
  std::ptrdiff_t stride = 0;
};

/// Filter of lines of an image.
struct LineFilter {
  Interpolation interpolation{};
  bool derivative = false;  ///< differentiates the spline at its knots
};

/// A band of rows of up to 16 columns of an image. Bands are filtered one after the other, down or up.
struct ColumnBand {
  float* out = nullptr;  ///< points to the first pixel
  std::ptrdiff_t stride = 0;
  int columns = 0, rows = 0;
  bool is_first = false;
  int rows_below = 0;  ///< number of rows of all bands below
  Interpolation interpolation{};
};

}  // namespace dic::refine
