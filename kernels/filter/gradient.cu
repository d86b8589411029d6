#include "filter/tile.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 256;
constexpr int tile_columns = 64;
constexpr int tile_rows = 32;
constexpr int run = tile_rows / (threads / tile_columns);  ///< neighbouring rows of one thread

/// Derivative and value of the spline at a knot, from the coefficients of the knots -radius .. radius around
/// the knot.
struct Stencil {
  int radius;
  float derivative[5], value[5];
};
constexpr __host__ __device__ Stencil stencil_of(GradientOf of) {
  if (of == GradientOf::cubic_spline) return {1, {-3, 0, 3}, {1, 4, 1}};                      // 6 each
  if (of == GradientOf::quintic_spline) return {2, {-5, -50, 0, 50, 5}, {1, 26, 66, 26, 1}};  // 120 each
  return {1, {-0.5F, 0, 0.5F}, {0, 1, 0}};
}

/// sum_k taps[k] at(k), without the products with zero.
template <typename At>
__device__ float weighted(const float (&taps)[5], const At& at) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 5; ++k)
    if (taps[k] != 0) sum += taps[k] * at(k);
  return sum;
}

/// Computes `run` rows of one column per thread: per row, derivative and value along x; these are combined
/// along y in registers.
template <typename T, GradientOf of>
__global__ void __launch_bounds__(threads, 4)
    gradient(const __grid_constant__ DeviceImage in, const __grid_constant__ DevicePlane<float> out_dx,
             const __grid_constant__ DevicePlane<float> out_dy, const __grid_constant__ TileGrid tiles) {
  constexpr Stencil stencil = stencil_of(of);
  constexpr int radius = stencil.radius;
  constexpr int columns = tile_columns + 2 * radius, rows = tile_rows + 2 * radius;
  using Size = TileSize<columns, rows, columns>;
  __shared__ float pixels[rows * columns];
  const int x = threadIdx.x % tile_columns, first = threadIdx.x / tile_columns * run;
  for_each_task(tiles.count, 1, 0, [&](std::int64_t task) {
    const int x0 = tiles.column(task) * tile_columns;
    const int y0 = tiles.row(task) * tile_rows;
    load_tile<T, Size, threads>(in, x0 - radius, y0 - radius, Border::point_reflection, pixels);
    __syncthreads();
    float slope[run + 2 * radius], level[run + 2 * radius];
#pragma unroll
    for (int j = 0; j < run + 2 * radius; ++j) {
      const auto at = [line = pixels + (first + j) * columns + x](int k) { return line[k]; };
      slope[j] = weighted(stencil.derivative, at);
      level[j] = weighted(stencil.value, at);
    }
    __syncthreads();  // the next task overwrites the tile
    if (x0 + x >= in.width) return;
#pragma unroll
    for (int j = 0; j < run; ++j) {
      const int y = y0 + first + j;
      if (y >= in.height) return;
      row_of(out_dx, y)[x0 + x] = weighted(stencil.value, [&](int k) { return slope[j + k]; });
      row_of(out_dy, y)[x0 + x] = weighted(stencil.derivative, [&](int k) { return level[j + k]; });
    }
  });
}

template <typename T>
auto gradient_of(GradientOf of) {
  if constexpr (std::is_same_v<T, float>) {
    if (of == GradientOf::cubic_spline) return gradient<T, GradientOf::cubic_spline>;
    if (of == GradientOf::quintic_spline) return gradient<T, GradientOf::quintic_spline>;
  }
  if (of != GradientOf::image) throw UsageError("The coefficients of a spline are f32.");
  return gradient<T, GradientOf::image>;
}

}  // namespace

void launch_gradient(const DeviceImage& in, ScalarType type, GradientOf of, DevicePlane<float> dx,
                     DevicePlane<float> dy, StreamHandle stream) {
  const TileGrid tiles(in, tile_columns, tile_rows);
  if (tiles.count == 0) return;
  visit_pixel(type, [&]<typename T>(T) {
    gradient_of<T>(of)<<<grid_size(tiles.count, 1), threads, 0, stream>>>(in, dx, dy, tiles);
  });
  check_launch("gradient (image " + std::to_string(in.height) + "x" + std::to_string(in.width) + ")");
}

}  // namespace dic::kernels
