#include <dic/kernels/pose.hpp>

#include "filter/tile.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 256;

template <typename T>
__global__ void __launch_bounds__(threads)
    reduce(const __grid_constant__ DeviceImage in, float* __restrict__ out, int width, std::int64_t count) {
  for_each_task(count, threads, threadIdx.x, [&](std::int64_t k) {
    const int y = static_cast<int>(k / width), x = static_cast<int>(k % width);
    const T* rows[4] = {row_of<T>(in, max(2 * y - 1, 0)), row_of<T>(in, 2 * y), row_of<T>(in, 2 * y + 1),
                        row_of<T>(in, min(2 * y + 2, in.height - 1))};
    const int at[4] = {max(2 * x - 1, 0), 2 * x, 2 * x + 1, min(2 * x + 2, in.width - 1)};
    float columns[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      columns[i] = static_cast<float>(rows[0][at[i]]) + static_cast<float>(rows[3][at[i]]) +
                   3 * (static_cast<float>(rows[1][at[i]]) + static_cast<float>(rows[2][at[i]]));
    constexpr float norm = 1.0f / 64;
    out[k] = norm * (columns[0] + columns[3] + 3 * (columns[1] + columns[2]));
  });
}

__global__ void __launch_bounds__(threads)
    reduce_mask(const __grid_constant__ DeviceImage in, float* __restrict__ out, int width,
                std::int64_t count) {
  for_each_task(count, threads, threadIdx.x, [&](std::int64_t k) {
    const int y = static_cast<int>(k / width), x = static_cast<int>(k % width);
    const float *a = row_of<float>(in, 2 * y) + 2 * x, *b = row_of<float>(in, 2 * y + 1) + 2 * x;
    out[k] = a[0] * a[1] * b[0] * b[1];
  });
}

std::int64_t half_count(const DeviceImage& in) {
  return static_cast<std::int64_t>(in.width / 2) * (in.height / 2);
}

}  // namespace

void launch_pose_reduced(const DeviceImage& in, ScalarType type, float* out, StreamHandle stream) {
  const std::int64_t count = half_count(in);
  if (count == 0) return;
  visit_scalar(type, [&]<typename T>(T) {
    reduce<T><<<grid_size(count, threads), threads, 0, stream>>>(in, out, in.width / 2, count);
  });
  check_launch("halving an image");
}

void launch_pose_reduced_mask(const DeviceImage& in, float* out, StreamHandle stream) {
  const std::int64_t count = half_count(in);
  if (count == 0) return;
  reduce_mask<<<grid_size(count, threads), threads, 0, stream>>>(in, out, in.width / 2, count);
  check_launch("halving a mask");
}

}  // namespace dic::kernels
