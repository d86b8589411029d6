#pragma once

#include <cstddef>
#include <dic/shared/subset_part.hpp>

namespace dic::refine {

/// Pixels of a subset relative to its centre, inclusive: -radius..radius unless the image's border cuts it.
struct SubsetRect {
  int left = 0, right = 0, top = 0, bottom = 0;
};

/// Weights of a subset's pixels; all are 1 if none(). The pointer is at the subset's centre, the stride in
/// floats. Rows may be read PaddedImage::kTail floats beyond the subset.
struct PixelWeights {
  const float* centre = nullptr;
  std::ptrdiff_t stride = 0;

  bool none() const { return centre == nullptr; }
  /// The weights of row j from column i on.
  const float* at(int i, int j) const { return centre + j * stride + i; }
};

/// Rows of padded images; the pointers are at the subset's centre, strides in floats.
struct ReferencePatch {
  const float* grey = nullptr;
  const float* dx = nullptr;  ///< gradient, grey levels per px
  const float* dy = nullptr;
  std::ptrdiff_t stride = 0;
  PixelWeights mask, window;  ///< the weight of a pixel is the product of both; the mask is 0 or 1
  /// Columns of each row that lie in the current image; the pointer is at the subset's centre, and the mask
  /// is 0 elsewhere. Null: the whole rectangle lies in the image.
  const PartRow* rows = nullptr;
  /// Columns of each row outside of which the mask is 0; the pointer is at the subset's centre. Null: any
  /// column may count.
  const PartRow* part = nullptr;

  bool has_weights() const { return !mask.none() || !window.none(); }
  SubsetRect rect;
};

}  // namespace dic::refine
