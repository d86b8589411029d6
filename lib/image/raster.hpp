#pragma once

#include <dic/shared/image_view.hpp>

namespace dic {

/// Pixels to be written: rows of `width` pixels of 1 (grey) or 3 (R, G, B) elements, without padding.
struct Raster {
  const void* data = nullptr;
  int width = 0, height = 0, channels = 1;
  ScalarType type = ScalarType::u8;  ///< u8, u16 or f32
};

}  // namespace dic
