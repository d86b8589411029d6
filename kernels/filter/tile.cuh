#pragma once

#include <dic/error.hpp>

#include "common/launch.cuh"
#include "filter/border.hpp"

/// Tiles of pictures in shared memory, with a halo, as floats.
namespace dic::kernels {

template <typename T>
__device__ const T* row_of(const DevicePicture& picture, int y) {
  return reinterpret_cast<const T*>(static_cast<const char*>(picture.data) + y * picture.row_bytes);
}
__device__ inline float* row_of(const DevicePlane<float>& plane, int y) {
  return reinterpret_cast<float*>(reinterpret_cast<char*>(plane.data) + y * plane.row_bytes);
}

/// The picture's value at (x, y), which may lie outside.
template <typename T>
__device__ float continued_pixel(const DevicePicture& picture, int x, int y, Border border) {
  const auto at_row = [&](int row) {
    const auto at = [line = row_of<T>(picture, row)](int i) { return static_cast<float>(line[i]); };
    return continued(at, picture.width, x, border);
  };
  return continued(at_row, picture.height, y, border);
}

/// The tiles of a picture, row after row. 32 bits count them: a division by 64 bits is a function call.
struct TileGrid {
  unsigned across, count;

  TileGrid(const DevicePicture& picture, int width, int height)
      : across((picture.width + width - 1) / width),
        count(across * ((picture.height + height - 1) / height)) {}
  __device__ int column(std::int64_t tile) const {
    return static_cast<int>(static_cast<unsigned>(tile) % across);
  }
  __device__ int row(std::int64_t tile) const {
    return static_cast<int>(static_cast<unsigned>(tile) / across);
  }
};

/// Where a tile of `columns` x `rows` begins in its picture and lies in shared memory.
struct Tile {
  int x0, y0;
  int columns, rows;
  int pitch;  ///< floats between the starts of two rows
};

/// Fills `pixels` by all threads of the block; the caller synchronizes.
template <typename T, int threads>
__device__ void load_tile(const DevicePicture& picture, const Tile& tile, Border border, float* pixels) {
  constexpr int warps = threads / warp_size;
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const bool inside = tile.x0 >= 0 && tile.y0 >= 0 && tile.x0 + tile.columns <= picture.width &&
                      tile.y0 + tile.rows <= picture.height;
  if (inside) {
#pragma unroll 4
    for (int y = warp; y < tile.rows; y += warps)
      for (int x = lane; x < tile.columns; x += warp_size)
        pixels[y * tile.pitch + x] = static_cast<float>(row_of<T>(picture, tile.y0 + y)[tile.x0 + x]);
  } else {
#pragma unroll 1
    for (int y = warp; y < tile.rows; y += warps)
#pragma unroll 1
      for (int x = lane; x < tile.columns; x += warp_size)
        pixels[y * tile.pitch + x] = continued_pixel<T>(picture, tile.x0 + x, tile.y0 + y, border);
  }
}

/// Calls visitor(element) with a value of the pixel's type.
template <typename Visitor>
void visit_pixel(ScalarType type, Visitor&& visitor) {
  if (type == ScalarType::u8) return visitor(std::uint8_t{});
  if (type == ScalarType::u16) return visitor(std::uint16_t{});
  if (type == ScalarType::f32) return visitor(float{});
  throw UsageError("Filters take u8, u16 or f32 pictures, not " + std::string(to_string(type)) + ".");
}

}  // namespace dic::kernels
