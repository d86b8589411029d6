#include <algorithm>

#include "filter/tile.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 256;
constexpr int tile_size = 64;
constexpr int run = 8;  ///< neighbouring outputs of a thread: each element is read once for all of them
constexpr int runs = tile_size / run;

/// The taps in the order of the elements, padded with zeros. As a kernel parameter they are in constant
/// memory, which multiplications read directly.
template <int radius>
struct Taps {
  float x[2 * radius + 1] = {}, y[2 * radius + 1] = {};

  Taps(std::span<const float> taps_x, std::span<const float> taps_y) {
    std::ranges::reverse_copy(taps_x, x + radius - taps_x.size() / 2);
    std::ranges::reverse_copy(taps_y, y + radius - taps_y.size() / 2);
  }
};

/// Shared memory of a tile: its pixels with their halo, followed by the filtered rows. Pitches are odd,
/// because lanes read columns.
template <int radius>
struct Layout : TileSize<tile_size + 2 * radius, tile_size + 2 * radius, tile_size + 2 * radius + 1> {
  static constexpr int filtered_pitch = tile_size + 1;
  static constexpr int filtered = Layout::rows * Layout::pitch;
  static constexpr int bytes = sizeof(float) * (filtered + Layout::rows * filtered_pitch);
};

/// Computes sums[o] = sum_k taps[k] line[(o + k) * stride].
template <int stride, int count>
__device__ void filter_run(const float* line, const float (&taps)[count], float (&sums)[run]) {
#pragma unroll
  for (float& sum : sums) sum = 0;
#pragma unroll
  for (int k = 0; k < count + run - 1; ++k) {
    const float element = line[k * stride];
#pragma unroll
    for (int o = 0; o < run; ++o)
      if (k - o >= 0 && k - o < count) sums[o] += taps[k - o] * element;
  }
}

/// Filters eight neighbouring columns per warp, a row per lane.
template <int radius>
__device__ void filter_rows(const float* pixels, const Taps<radius>& taps, float* filtered) {
  static_assert(threads / warp_size == runs);
  using L = Layout<radius>;
  const int first = threadIdx.x / warp_size * run;
  for (int y = threadIdx.x % warp_size; y < L::rows; y += warp_size) {
    float sums[run];
    filter_run<1>(pixels + y * L::pitch + first, taps.x, sums);
#pragma unroll
    for (int o = 0; o < run; ++o) filtered[y * L::filtered_pitch + first + o] = sums[o];
  }
}

/// Filters eight neighbouring rows of one column per thread.
template <int radius>
__device__ void filter_columns(const float* filtered, const Taps<radius>& taps, int width, int height,
                               const DevicePlane<float>& out, int x0, int y0) {
  constexpr int pitch = Layout<radius>::filtered_pitch;
  const int x = threadIdx.x % tile_size;
  if (x0 + x >= width) return;
#pragma unroll 1
  for (int first = threadIdx.x / tile_size * run; first < tile_size; first += threads / tile_size * run) {
    float sums[run];
    filter_run<pitch>(filtered + first * pitch + x, taps.y, sums);
#pragma unroll
    for (int o = 0; o < run; ++o)
      if (y0 + first + o < height) row_of(out, y0 + first + o)[x0 + x] = sums[o];
  }
}

template <typename T, int radius>
__global__ void __launch_bounds__(threads, 2)
    convolution(const __grid_constant__ DeviceImage in, const __grid_constant__ Taps<radius> taps,
                Border border, const __grid_constant__ DevicePlane<float> out,
                const __grid_constant__ TileGrid tiles) {
  extern __shared__ float pixels[];
  float* filtered = pixels + Layout<radius>::filtered;
  for_each_task(tiles.count, 1, 0, [&](std::int64_t task) {
    const int x0 = tiles.column(task) * tile_size;
    const int y0 = tiles.row(task) * tile_size;
    load_tile<T, Layout<radius>, threads>(in, x0 - radius, y0 - radius, border, pixels);
    __syncthreads();
    filter_rows(pixels, taps, filtered);
    __syncthreads();  // the next tile is loaded while the columns of this one are filtered
    filter_columns(filtered, taps, in.width, in.height, out, x0, y0);
  });
}

void check_taps(std::span<const float> taps) {
  if (taps.size() % 2 == 0 || taps.size() > most_taps)
    throw UsageError("A convolution takes an odd number of taps up to " + std::to_string(most_taps) +
                     " per direction, not " + std::to_string(taps.size()) + ".");
}

/// Launches the kernel of the smallest radius that holds the taps; the radii are radius, 2 radius + 1, ...
template <int radius = 3>
void launch_radius(const DeviceImage& in, ScalarType type, std::span<const float> taps_x,
                   std::span<const float> taps_y, Border border, DevicePlane<float> out,
                   StreamHandle stream) {
  if constexpr (2 * radius + 1 < most_taps) {
    if (std::max(taps_x.size(), taps_y.size()) > 2 * radius + 1)
      return launch_radius<2 * radius + 1>(in, type, taps_x, taps_y, border, out, stream);
  }
  const TileGrid tiles(in, tile_size, tile_size);
  if (tiles.count == 0) return;
  visit_pixel(type, [&]<typename T>(T) {
    constexpr int shared = Layout<radius>::bytes;
    check(cudaFuncSetAttribute(convolution<T, radius>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
          "Reserving shared memory for a convolution");
    convolution<T, radius><<<grid_size(tiles.count, 1), threads, shared, stream>>>(
        in, Taps<radius>(taps_x, taps_y), border, out, tiles);
  });
}

}  // namespace

void launch_convolution(const DeviceImage& in, ScalarType type, std::span<const float> taps_x,
                        std::span<const float> taps_y, Border border, DevicePlane<float> out,
                        StreamHandle stream) {
  check_taps(taps_x);
  check_taps(taps_y);
  launch_radius(in, type, taps_x, taps_y, border, out, stream);
  check_launch("convolution (" + std::to_string(taps_x.size()) + " x " + std::to_string(taps_y.size()) +
               " taps, image " + std::to_string(in.height) + "x" + std::to_string(in.width) + ")");
}

}  // namespace dic::kernels
