#include <algorithm>

#include "filter/tile.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 256;
constexpr int tile_size = 64;
constexpr int run = 8;  ///< neighbouring outputs that a thread computes: each element read serves all of them
constexpr int runs = tile_size / run;

/// Taps in the order in which they meet the elements, between zeros: output o of a run meets element k with
/// tap k - o.
struct Taps {
  int count;
  float padded[run - 1 + most_taps + run - 1] = {};

  explicit Taps(std::span<const float> taps) : count(static_cast<int>(taps.size())) {
    std::ranges::reverse_copy(taps, padded + run - 1);
  }
  __host__ __device__ int radius() const { return count / 2; }
  __device__ float at(int k) const { return padded[run - 1 + k]; }
};

/// sums[o] = sum_k taps[k] line[(o + k) * stride].
__device__ void filter_run(const float* line, int stride, const Taps& taps, float (&sums)[run]) {
#pragma unroll
  for (float& sum : sums) sum = 0;
#pragma unroll 8
  for (int k = 0; k < taps.count + run - 1; ++k) {
    const float element = line[k * stride];
#pragma unroll
    for (int o = 0; o < run; ++o) sums[o] += taps.at(k - o) * element;
  }
}

/// Shared memory of a block: the tile with its halo, and behind it the tile's rows once they are filtered.
/// Odd pitches: lanes read down columns.
struct Layout {
  int columns, rows, pitch;
  static constexpr int filtered_pitch = tile_size + 1;

  __host__ __device__ Layout(const Taps& taps_x, const Taps& taps_y)
      : columns(tile_size + 2 * taps_x.radius()), rows(tile_size + 2 * taps_y.radius()), pitch(columns | 1) {}
  std::size_t bytes() const { return sizeof(float) * rows * (pitch + filtered_pitch); }
};

/// A warp filters eight neighbouring columns, a row per lane.
__device__ void filter_rows(const float* pixels, const Layout& layout, const Taps& taps, float* filtered) {
  static_assert(threads / warp_size == runs);
  const int first = threadIdx.x / warp_size * run;
  for (int y = threadIdx.x % warp_size; y < layout.rows; y += warp_size) {
    float sums[run];
    filter_run(pixels + y * layout.pitch + first, 1, taps, sums);
#pragma unroll
    for (int o = 0; o < run; ++o) filtered[y * Layout::filtered_pitch + first + o] = sums[o];
  }
}

/// A thread filters eight neighbouring rows of one column.
__device__ void filter_columns(const float* filtered, const Taps& taps, int width, int height,
                               const DevicePlane<float>& out, int x0, int y0) {
  const int x = threadIdx.x % tile_size;
  if (x0 + x >= width) return;
  for (int first = threadIdx.x / tile_size * run; first < tile_size; first += threads / tile_size * run) {
    float sums[run];
    filter_run(filtered + first * Layout::filtered_pitch + x, Layout::filtered_pitch, taps, sums);
#pragma unroll
    for (int o = 0; o < run; ++o)
      if (y0 + first + o < height) row_of(out, y0 + first + o)[x0 + x] = sums[o];
  }
}

template <typename T>
__global__ void __launch_bounds__(threads)
    convolution(const __grid_constant__ DevicePicture in, const __grid_constant__ Taps taps_x,
                const __grid_constant__ Taps taps_y, Border border,
                const __grid_constant__ DevicePlane<float> out, const __grid_constant__ TileGrid tiles) {
  extern __shared__ float pixels[];
  const Layout layout(taps_x, taps_y);
  float* filtered = pixels + layout.rows * layout.pitch;
  for_each_task(tiles.count, 1, 0, [&](std::int64_t task) {
    const int x0 = tiles.column(task) * tile_size;
    const int y0 = tiles.row(task) * tile_size;
    load_tile<T, threads>(
        in, {x0 - taps_x.radius(), y0 - taps_y.radius(), layout.columns, layout.rows, layout.pitch}, border,
        pixels);
    __syncthreads();
    filter_rows(pixels, layout, taps_x, filtered);
    __syncthreads();  // the next tile's pixels are loaded while its predecessor's columns are filtered
    filter_columns(filtered, taps_y, in.width, in.height, out, x0, y0);
  });
}

void check_taps(std::span<const float> taps) {
  if (taps.size() % 2 == 0 || taps.size() > most_taps)
    throw UsageError("A convolution takes an odd number of taps up to " + std::to_string(most_taps) +
                     " per direction, not " + std::to_string(taps.size()) + ".");
}

}  // namespace

void launch_convolution(const DevicePicture& in, ScalarType type, std::span<const float> taps_x,
                        std::span<const float> taps_y, Border border, DevicePlane<float> out,
                        StreamHandle stream) {
  check_taps(taps_x);
  check_taps(taps_y);
  const Taps x(taps_x), y(taps_y);
  const TileGrid tiles(in, tile_size, tile_size);
  if (tiles.count == 0) return;
  const std::size_t shared = Layout(x, y).bytes();
  visit_pixel(type, [&]<typename T>(T) {
    check(cudaFuncSetAttribute(convolution<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared)),
          "Reserving shared memory for a convolution");
    convolution<T><<<grid_size(tiles.count, 1), threads, shared, stream>>>(in, x, y, border, out, tiles);
  });
  check_launch("convolution (" + std::to_string(taps_x.size()) + " x " + std::to_string(taps_y.size()) +
               " taps, picture " + std::to_string(in.height) + "x" + std::to_string(in.width) + ")");
}

}  // namespace dic::kernels
