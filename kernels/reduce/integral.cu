#include "common/launch.cuh"
#include "dic/kernels/reduce.hpp"

// The image is divided into bands of rows. A first kernel sums the columns of every band, a second adds these
// sums up down the image. A third computes the rows of the table, each block for any band, beginning with the
// sums of all rows above. The image is read twice, the table written once.
namespace dic::kernels {
namespace {

constexpr int threads = 256;
constexpr int rows_of_band = 15;  ///< one row per warp; one more warp takes the row of sums from above
constexpr int band_warps = rows_of_band + 1;
constexpr int band_threads = band_warps * warp_size;
constexpr int columns_of_lane = 4;
constexpr int chunk = columns_of_lane * warp_size;  ///< columns that a block works on at a time

template <typename Sum, Power power, typename T>
__device__ Sum raised(T value) {
  const Sum sum = static_cast<Sum>(value);
  return power == Power::one ? sum : sum * sum;
}

template <typename T>
__device__ const T* row_of(const DeviceImage& image, int y) {
  return reinterpret_cast<const T*>(static_cast<const char*>(image.data) + y * image.row_bytes);
}

/// above[band, x] = sum of column x of the band.
template <typename T, Power power>
__global__ void __launch_bounds__(threads)
    sum_bands(const __grid_constant__ DeviceImage in, int bands, IntegralOf<T, power>* above) {
  using Sum = IntegralOf<T, power>;
  for_each_task(std::int64_t{bands} * in.width, threads, threadIdx.x, [&](std::int64_t task) {
    const auto x = static_cast<int>(task % in.width);
    const auto y0 = static_cast<int>(task / in.width) * rows_of_band;
    Sum sum = 0;
#pragma unroll
    for (int y = y0; y < y0 + rows_of_band; ++y)
      if (y < in.height) sum += raised<Sum, power>(row_of<T>(in, y)[x]);
    above[task] = sum;
  });
}

/// Replaces above[band, x] by the sum of all bands above.
template <typename Sum>
__global__ void __launch_bounds__(threads) add_bands(int width, int bands, Sum* above) {
  constexpr int at_once = 16;  // loads in flight
  for_each_task(width, threads, threadIdx.x, [&](std::int64_t x) {
    Sum total = 0;
    for (int band = 0; band < bands; band += at_once) {
      Sum sums[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        sums[i] = band + i < bands ? above[std::int64_t{band + i} * width + x] : Sum{0};
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (band + i < bands) above[std::int64_t{band + i} * width + x] = total;
        total += sums[i];
      }
    }
  });
}

template <typename Sum>
struct alignas(sizeof(Sum) * columns_of_lane) LaneColumns {
  Sum sum[columns_of_lane];
};

/// Replaces values of neighbouring columns by their running sums over the warp, beginning with `before`.
template <typename Sum>
__device__ void add_along(LaneColumns<Sum>& values, Sum before) {
  const int lane = threadIdx.x % warp_size;
#pragma unroll
  for (int i = 1; i < columns_of_lane; ++i) values.sum[i] += values.sum[i - 1];
  const Sum own = values.sum[columns_of_lane - 1];
  Sum running = own;
#pragma unroll
  for (int offset = 1; offset < warp_size; offset *= 2) {
    const Sum left = __shfl_up_sync(all_lanes, running, offset);
    if (lane >= offset) running += left;
  }
  const Sum left_sum = __shfl_up_sync(all_lanes, running, 1);
#pragma unroll
  for (int i = 0; i < columns_of_lane; ++i) values.sum[i] += before + (lane > 0 ? left_sum : Sum{0});
}

/// Computes the rows of the table of one band per block, from left to right. Warp 0 has the row of sums from
/// above, each other warp one row of the image: sums along the rows, then down the columns.
template <typename T, Power power>
__global__ void __launch_bounds__(band_threads, 3)
    integrate_bands(const __grid_constant__ DeviceImage in, int bands, const IntegralOf<T, power>* above,
                    IntegralOf<T, power>* table) {
  using Sum = IntegralOf<T, power>;
  __shared__ LaneColumns<Sum> along[2][band_warps][warp_size];
  const int lane = threadIdx.x % warp_size, row = threadIdx.x / warp_size;
  const std::int64_t pitch = std::int64_t{in.width} + 1;
  for_each_task(bands, 1, 0, [&](std::int64_t band) {
    const auto y0 = static_cast<int>(band) * rows_of_band;
    const int y = y0 + row - 1;
    const int rows = min(rows_of_band, in.height - y0) + 1;
    const T* line = row_of<T>(in, row == 0 ? 0 : y);
    const Sum* line_above = above + band * in.width;
    const auto load = [&](int x0) {
      LaneColumns<Sum> values;
#pragma unroll
      for (int i = 0; i < columns_of_lane; ++i) {
        const int x = x0 + lane * columns_of_lane + i;
        values.sum[i] = 0;
        if (x < in.width && row < rows)
          values.sum[i] = row == 0 ? line_above[x] : raised<Sum, power>(line[x]);
      }
      return values;
    };
    const int first_row = band == 0 ? 0 : 1;  // the row above the band belongs to the band above
    if (lane == 0 && row >= first_row && row < rows) table[(y + 1) * pitch] = 0;
    // A thread does a quarter of the rows of one column.
    const int column = threadIdx.x % chunk, first = threadIdx.x / chunk * columns_of_lane;
    Sum* target = table + (y0 + first) * pitch + column + 1;
    Sum before = 0;
    LaneColumns<Sum> values = load(0);
    for (int x0 = 0, buffer = 0; x0 < in.width; x0 += chunk, buffer = 1 - buffer, target += chunk) {
      add_along(values, before);
      before = __shfl_sync(all_lanes, values.sum[columns_of_lane - 1], warp_size - 1);
      along[buffer][row][lane] = values;
      values = load(x0 + chunk);
      __syncthreads();  // one barrier per chunk is enough: the other buffer is still read
      if (x0 + column >= in.width) continue;
      const Sum* column_of_row = reinterpret_cast<const Sum*>(along[buffer]) + column;
      Sum sum = 0;
#pragma unroll 4
      for (int r = 0; r < first; ++r) sum += column_of_row[r * chunk];
#pragma unroll
      for (int r = 0; r < columns_of_lane; ++r) {
        sum += column_of_row[(first + r) * chunk];
        if (first + r >= first_row && first + r < rows) target[r * pitch] = sum;
      }
    }
    __syncthreads();  // the next band uses the buffers again
  });
}
static_assert(band_warps == columns_of_lane * (band_threads / chunk));

int bands_of(const DeviceImage& in) { return (in.height + rows_of_band - 1) / rows_of_band; }

}  // namespace

template <typename T, Power power>
std::size_t integral_workspace_bytes(const DeviceImage& in) {
  return sizeof(IntegralOf<T, power>) * static_cast<std::size_t>(bands_of(in)) * in.width;
}

template <typename T, Power power>
void launch_integral(const DeviceImage& in, IntegralOf<T, power>* table, void* workspace,
                     StreamHandle stream) {
  using Sum = IntegralOf<T, power>;
  const int bands = bands_of(in);
  if (bands == 0 || in.width == 0) {
    const std::size_t entries = (in.width + std::size_t{1}) * (in.height + std::size_t{1});
    return fill(table, 0, entries * sizeof(Sum), stream);
  }
  auto* above = static_cast<Sum*>(workspace);
  sum_bands<T, power>
      <<<grid_size(std::int64_t{bands} * in.width, threads), threads, 0, stream>>>(in, bands, above);
  add_bands<<<grid_size(in.width, threads), threads, 0, stream>>>(in.width, bands, above);
  integrate_bands<T, power><<<grid_size(bands, 1), band_threads, 0, stream>>>(in, bands, above, table);
  check_launch("integral image (image " + std::to_string(in.height) + "x" + std::to_string(in.width) + ")");
}

#define DIC_INSTANTIATE(T, power)                                              \
  template std::size_t integral_workspace_bytes<T, power>(const DeviceImage&); \
  template void launch_integral<T, power>(const DeviceImage&, IntegralOf<T, power>*, void*, StreamHandle);
DIC_INSTANTIATE(std::uint8_t, Power::one)
DIC_INSTANTIATE(std::uint8_t, Power::two)
DIC_INSTANTIATE(std::uint16_t, Power::one)
DIC_INSTANTIATE(std::uint16_t, Power::two)
DIC_INSTANTIATE(float, Power::one)
DIC_INSTANTIATE(float, Power::two)
#undef DIC_INSTANTIATE

}  // namespace dic::kernels
