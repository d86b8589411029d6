#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/shared/image_view.hpp>
#include <functional>
#include <span>

namespace dic::image {

/// Format of pixels to write: rows of `width` pixels of 1 (grey) or 3 (R, G, B) elements, without padding.
struct RasterFormat {
  int width = 0, height = 0, channels = 1;
  ScalarType type = ScalarType::u8;  ///< u8, u16 or f32
  int bit_depth = 0;                 ///< as of ImageView

  std::size_t pixel_bytes() const { return size_of(type) * channels; }
  std::size_t row_bytes() const { return pixel_bytes() * width; }
};

struct Raster : RasterFormat {
  const void* data = nullptr;
};

/// A function that fills row y of an image.
using RowWriter = std::function<void(int y, std::span<std::uint8_t> row)>;

}  // namespace dic::image
