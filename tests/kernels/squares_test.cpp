#include <dic/kernels/squares.hpp>
#include <random>
#include <vector>

#include "kernels/device_data.hpp"
#include "support/gpu_test.hpp"

// Tests copies of squares against the pixels, one by one.
namespace dic::test {
namespace {

using kernels::Corner;
using Squares = GpuTest;

template <typename T>
void check(int width, int height, int pitch, int side, int count) {
  std::mt19937 random(width + side);
  std::vector<T> pixels(static_cast<std::size_t>(pitch) * height);
  for (T& pixel : pixels) pixel = static_cast<T>(random());
  std::vector<Corner> corners;
  for (int k = 0; k < count; ++k)
    corners.push_back(
        {static_cast<int>(random() % (width - side + 1)), static_cast<int>(random() % (height - side + 1))});
  const kernels::Stream stream;
  kernels::DeviceBuffer image, places, out;
  kernels::upload(image.reserve<T>(pixels.size()), pixels.data(), pixels.size() * sizeof(T), stream);
  kernels::upload(places.reserve<Corner>(corners.size()), corners.data(), corners.size() * sizeof(Corner),
                  stream);
  std::vector<T> got(static_cast<std::size_t>(count) * side * side);
  kernels::launch_copy_squares({image.data(), static_cast<std::ptrdiff_t>(pitch * sizeof(T)), width, height},
                               sizeof(T), static_cast<const Corner*>(places.data()), count, side,
                               out.reserve<T>(got.size()), stream.handle());
  kernels::download(got.data(), out.data(), got.size() * sizeof(T), stream);
  stream.synchronize("squares");
  std::size_t next = 0;
  for (const Corner& corner : corners)
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x)
        ASSERT_EQ(got[next++], pixels[static_cast<std::size_t>(corner.y + y) * pitch + corner.x + x]);
}

TEST_F(Squares, AreCopiesOfThePixels) {
  check<std::uint8_t>(16, 16, 19, 16, 1);
  check<std::uint8_t>(301, 40, 307, 16, 200);
  check<std::uint16_t>(65, 70, 65, 7, 33);
  check<std::int32_t>(40, 30, 41, 1, 500);
  check<std::uint64_t>(90, 90, 90, 33, 5);
}

}  // namespace
}  // namespace dic::test
