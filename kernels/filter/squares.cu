#include <cstdint>
#include <dic/kernels/squares.hpp>

#include "common/launch.cuh"
#include "filter/tile.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 256;

/// Copies one square after the other per block.
template <typename T>
__global__ void __launch_bounds__(threads)
    copy_squares(const __grid_constant__ DeviceImage in, const Corner* corners, int count, int side, T* out) {
  for_each_task(count, 1, 0, [&](std::int64_t square) {
    const Corner corner = corners[square];
    T* const to = out + square * side * side;
    for (int i = threadIdx.x; i < side * side; i += threads)
      to[i] = row_of<T>(in, corner.y + i / side)[corner.x + i % side];
  });
}

template <typename T>
void launch(const DeviceImage& in, const Corner* corners, int count, int side, void* out,
            StreamHandle stream) {
  copy_squares<T>
      <<<grid_size(count, 1), threads, 0, stream>>>(in, corners, count, side, static_cast<T*>(out));
}

}  // namespace

void launch_copy_squares(const DeviceImage& in, std::size_t element_bytes, const Corner* corners, int count,
                         int side, void* out, StreamHandle stream) {
  if (count == 0 || side == 0) return;
  switch (element_bytes) {
    case 1:
      launch<std::uint8_t>(in, corners, count, side, out, stream);
      break;
    case 2:
      launch<std::uint16_t>(in, corners, count, side, out, stream);
      break;
    case 4:
      launch<std::uint32_t>(in, corners, count, side, out, stream);
      break;
    default:
      launch<std::uint64_t>(in, corners, count, side, out, stream);
  }
  check_launch("the copy of squares");
}

}  // namespace dic::kernels
