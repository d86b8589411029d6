#pragma once

#include <dic/shared/error.hpp>

#include "common/launch.cuh"
#include "filter/border.hpp"

/// Tiles of images in shared memory, with a halo, as floats.
namespace dic::kernels {

template <typename T>
__device__ const T* row_of(const DeviceImage& image, int y) {
  return reinterpret_cast<const T*>(static_cast<const char*>(image.data) + y * image.row_bytes);
}
template <typename T>
__device__ T* row_of(const DevicePlane<T>& plane, int y) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(plane.data) + y * plane.row_bytes);
}

/// Value at (x, y), which may be outside the image.
template <typename T>
__device__ float continued_pixel(const DeviceImage& image, int x, int y, Border border) {
  const auto at_row = [&](int row) {
    const auto at = [line = row_of<T>(image, row)](int i) { return static_cast<float>(line[i]); };
    return bordered_element(at, image.width, x, border);
  };
  return bordered_element(at_row, image.height, y, border);
}

/// The tiles of an image, row after row. Their number has 32 bits: a 64-bit division is a function call.
struct TileGrid {
  unsigned across, count;

  TileGrid(const DeviceImage& image, int width, int height)
      : across((image.width + width - 1) / width), count(across * ((image.height + height - 1) / height)) {}
  __device__ int column(std::int64_t tile) const {
    return static_cast<int>(static_cast<unsigned>(tile) % across);
  }
  __device__ int row(std::int64_t tile) const {
    return static_cast<int>(static_cast<unsigned>(tile) / across);
  }
};

/// Size of a tile, and distance of its rows in shared memory, in floats.
template <int tile_columns, int tile_rows, int tile_pitch>
struct TileSize {
  static constexpr int columns = tile_columns, rows = tile_rows, pitch = tile_pitch;
};

/// Fills `pixels` with the tile that begins at (x0, y0). All threads of the block must call it; the caller
/// synchronizes.
template <typename T, typename Size, int threads>
__device__ void load_tile(const DeviceImage& image, int x0, int y0, Border border, float* pixels) {
  constexpr int count = Size::columns * Size::rows, at_once = 8;  // loads in flight
  const bool inside =
      x0 >= 0 && y0 >= 0 && x0 + Size::columns <= image.width && y0 + Size::rows <= image.height;
  if (inside) {
    for (int first = threadIdx.x; first < count; first += at_once * threads) {
      float values[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (const int i = first + k * threads; i < count)
          values[k] = static_cast<float>(row_of<T>(image, y0 + i / Size::columns)[x0 + i % Size::columns]);
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (const int i = first + k * threads; i < count)
          pixels[i / Size::columns * Size::pitch + i % Size::columns] = values[k];
    }
  } else {
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += threads)
      pixels[i / Size::columns * Size::pitch + i % Size::columns] =
          continued_pixel<T>(image, x0 + i % Size::columns, y0 + i / Size::columns, border);
  }
}

/// Calls visitor(element) with a value of the pixel type.
template <typename Visitor>
void visit_pixel(ScalarType type, Visitor&& visitor) {
  if (type == ScalarType::u8) return visitor(std::uint8_t{});
  if (type == ScalarType::u16) return visitor(std::uint16_t{});
  if (type == ScalarType::f32) return visitor(float{});
  throw UsageError("Filters take u8, u16 or f32 images, not " + std::string(to_string(type)) + ".");
}

}  // namespace dic::kernels
