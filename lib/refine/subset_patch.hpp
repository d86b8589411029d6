#pragma once

#include <cstddef>
#include <dic/shared/subset_part.hpp>

namespace dic {

/// Pixels of a subset relative to its centre, inclusive: all of -radius..radius unless the border cuts it.
struct SubsetRect {
  int left = 0, right = 0, top = 0, bottom = 0;
};

/// A weight per pixel; none: all 1. The pointer is at the subset's centre, the stride in floats. Rows may be
/// read PaddedImage::kTail beyond the subset.
struct PixelWeights {
  const float* centre = nullptr;
  std::ptrdiff_t stride = 0;

  bool none() const { return centre == nullptr; }
  /// Those from column i of row j on.
  const float* at(int i, int j) const { return centre + j * stride + i; }
};

/// Rows of padded images; the pointers are at the subset's centre, strides in floats.
struct ReferencePatch {
  const float* grey = nullptr;
  const float* dx = nullptr;  ///< gradient, grey levels per px
  const float* dy = nullptr;
  std::ptrdiff_t stride = 0;
  PixelWeights mask, window;  ///< a pixel has the product of both; the mask is 0 or 1
  /// Columns that lie in the current image, by row, at the subset's centre; null: all of the rectangle do.
  /// The mask is 0 elsewhere.
  const PartRow* rows = nullptr;

  bool has_weights() const { return !mask.none() || !window.none(); }
  SubsetRect rect;
};

}  // namespace dic
