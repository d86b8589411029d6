#include <dic/kernels/pyramid.hpp>
#include <dic/shared/pyramid.hpp>

#include "filter/tile.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 256;
/// Limit of the number of blocks: every block combines the extrema of all parts, which costs little with few
/// blocks.
constexpr int most_blocks = 1024;

/// Calls body(x, y) for the cells of a `width` x `height` raster: rows are distributed over blocks, columns
/// over threads.
template <typename Body>
__device__ void for_each_cell(int width, int height, Body&& body) {
  for (int y = blockIdx.x; y < height; y += gridDim.x) {
#pragma unroll 4
    for (int x = threadIdx.x; x < width; x += threads) body(x, y);
  }
}

__device__ Extrema both(const Extrema& a, const Extrema& b) {
  return {min(a.low, b.low), max(a.high, b.high)};
}

/// Extrema of all threads of a block, returned in every thread.
__device__ Extrema over_block(Extrema extrema) {
  __shared__ Extrema warps[threads / warp_size];
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    extrema = both(extrema, {__shfl_xor_sync(all_lanes, extrema.low, offset),
                             __shfl_xor_sync(all_lanes, extrema.high, offset)});
  if (threadIdx.x % warp_size == 0) warps[threadIdx.x / warp_size] = extrema;
  __syncthreads();
  for (const Extrema& other : warps) extrema = both(extrema, other);
  return extrema;
}

/// Finds the extrema of every gridDim.x-th row.
template <typename T>
__global__ void __launch_bounds__(threads)
    extrema_of_parts(const __grid_constant__ DeviceImage in, Extrema* part_extrema) {
  T low = *row_of<T>(in, blockIdx.x), high = low;
  for_each_cell(in.width, in.height, [&](int x, int y) {
    const T value = row_of<T>(in, y)[x];
    low = min(low, value);
    high = max(high, value);
  });
  const Extrema extrema = over_block({static_cast<double>(low), static_cast<double>(high)});
  if (threadIdx.x == 0) part_extrema[blockIdx.x] = extrema;
}

/// Stretches the image and halves it. A cell is 2x2 px of the image, one of the reduced image.
template <typename T>
__global__ void __launch_bounds__(threads)
    stretch(const __grid_constant__ DeviceImage in, const Extrema* part_extrema, int parts,
            const __grid_constant__ DevicePlane<std::uint8_t> full,
            const __grid_constant__ DevicePlane<std::uint8_t> half) {
  Extrema extrema = part_extrema[0];
  for (int i = threadIdx.x; i < parts; i += threads) extrema = both(extrema, part_extrema[i]);
  extrema = over_block(extrema);
  const GreyStretch stretch(extrema.low, extrema.high);
  for_each_cell((in.width + 1) / 2, (in.height + 1) / 2, [&](int x, int y) {
    const bool pair_of_columns = 2 * x + 1 < in.width, pair_of_rows = 2 * y + 1 < in.height;
    std::uint8_t pixels[2][2] = {};
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if ((i == 1 && !pair_of_columns) || (j == 1 && !pair_of_rows)) continue;
        pixels[j][i] = stretch(row_of<T>(in, 2 * y + j)[2 * x + i]);
        if (full.data) row_of(full, 2 * y + j)[2 * x + i] = pixels[j][i];
      }
    if (half.data && pair_of_columns && pair_of_rows)
      row_of(half, y)[x] = mean_of_four(pixels[0][0], pixels[0][1], pixels[1][0], pixels[1][1]);
  });
}

__global__ void __launch_bounds__(threads)
    halve(const __grid_constant__ DeviceImage in, const __grid_constant__ DevicePlane<std::uint8_t> out) {
  for_each_cell(in.width / 2, in.height / 2, [&](int x, int y) {
    const std::uint8_t *upper = row_of<std::uint8_t>(in, 2 * y) + 2 * x,
                       *lower = row_of<std::uint8_t>(in, 2 * y + 1) + 2 * x;
    row_of(out, y)[x] = mean_of_four(upper[0], upper[1], lower[0], lower[1]);
  });
}

std::string describe(const char* what, const DeviceImage& in) {
  return std::string(what) + " (image " + std::to_string(in.height) + "x" + std::to_string(in.width) + ")";
}

}  // namespace

void launch_extrema(const DeviceImage& in, ScalarType type, Extrema* extrema, StreamHandle stream) {
  if (in.width <= 0 || in.height <= 0) return;
  visit_scalar(type, [&]<typename T>(T) {
    extrema_of_parts<T><<<extrema_of_rows(in.height), threads, 0, stream>>>(in, extrema);
  });
  check_launch(describe("extrema", in));
}

void launch_stretched(const DeviceImage& in, ScalarType type, const Extrema* extrema, int count,
                      DevicePlane<std::uint8_t> full, DevicePlane<std::uint8_t> half, StreamHandle stream) {
  if (in.width <= 0 || in.height <= 0) return;
  visit_scalar(type, [&]<typename T>(T) {
    stretch<T>
        <<<std::min((in.height + 1) / 2, most_blocks), threads, 0, stream>>>(in, extrema, count, full, half);
  });
  check_launch(describe("stretching to 8 bit", in));
}

void launch_halved(const DeviceImage& in, DevicePlane<std::uint8_t> out, StreamHandle stream) {
  if (in.width < 2 || in.height < 2) return;
  halve<<<grid_size(in.height / 2, 1), threads, 0, stream>>>(in, out);
  check_launch("halving (image " + std::to_string(in.height) + "x" + std::to_string(in.width) + ")");
}

}  // namespace dic::kernels
