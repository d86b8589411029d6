#include <cmath>
#include <dic/kernels/pyramid.hpp>

#include "kernels/device_data.hpp"
#include "support/gpu_test.hpp"

// Tests stretching to 8 bit and halving against their definitions in float64 and integers.
namespace dic::test {
namespace {

using kernels::DeviceBuffer;
using kernels::Stream;

using Pyramid = GpuTest;
using Bytes = std::vector<std::uint8_t>;

struct Size {
  int w, h;
};
constexpr Size sizes[] = {{1, 1},   {1, 150},  {150, 1},  {2, 3},    {7, 5},
                          {64, 64}, {65, 129}, {131, 67}, {300, 40}, {9, 3000}};

Bytes halved(Size size, const Bytes& in) {
  Bytes out;
  for (int y = 0; y + 1 < size.h; y += 2)
    for (int x = 0; x + 1 < size.w; x += 2) {
      const int sum = in[y * size.w + x] + in[y * size.w + x + 1] + in[(y + 1) * size.w + x] +
                      in[(y + 1) * size.w + x + 1];
      out.push_back(static_cast<std::uint8_t>(std::floor(sum / 4.0 + 0.5)));
    }
  return out;
}

TEST_F(Pyramid, Halves) {
  for (const Size size : sizes) {
    SCOPED_TRACE(testing::Message() << size.w << " x " << size.h);
    const Stream stream;
    const Bytes values = random_values<std::uint8_t>(static_cast<std::size_t>(size.w) * size.h, 1);
    const DeviceRows<std::uint8_t> in(size.w, size.h, values, stream), out(size.w / 2, size.h / 2, stream);
    kernels::launch_halved(in.image(), out.plane(), stream.handle());
    EXPECT_EQ(out.values(stream), halved(size, values));
  }
}

/// Expects rounding to the nearest of 0..255, within the error of float arithmetic.
template <typename T>
void expect_stretched(const Bytes& got, const std::vector<T>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const auto from = static_cast<double>(*low), range = static_cast<double>(*high) - from;
  ASSERT_EQ(got.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double want = range > 0 ? (static_cast<double>(values[i]) - from) * 255 / range : 0;
    ASSERT_NEAR(got[i], want, 0.5001) << "pixel " << i;
  }
}

/// The image from row `first` on.
kernels::DeviceImage rows_from(kernels::DeviceImage image, int first) {
  image.data = static_cast<const std::byte*>(image.data) + first * image.row_bytes;
  return image;
}
kernels::DevicePlane<std::uint8_t> rows_from(kernels::DevicePlane<std::uint8_t> plane, int first) {
  if (plane.data) plane.data += first * plane.row_bytes;
  return plane;
}

void stretch_in_bands(const kernels::DeviceImage& in, ScalarType type,
                      const kernels::DevicePlane<std::uint8_t>& full,
                      const kernels::DevicePlane<std::uint8_t>& half, int rows, const Stream& stream) {
  DeviceBuffer memory;
  auto* extrema = memory.reserve<kernels::Extrema>(in.height * 2);
  kernels::fill(extrema, device_poison, memory.size(), stream.handle());
  const auto each_band = [&](const auto& body) {
    for (int first = 0; first < in.height; first += rows) {
      kernels::DeviceImage band = rows_from(in, first);
      band.height = std::min(rows, in.height - first);
      body(band, first);
    }
  };
  int count = 0;
  each_band([&](const kernels::DeviceImage& band, int) {
    kernels::launch_extrema(band, type, extrema + count, stream.handle());
    count += kernels::extrema_of_rows(band.height);
  });
  each_band([&](const kernels::DeviceImage& band, int first) {
    kernels::launch_stretched(band, type, extrema, count, rows_from(full, first), rows_from(half, first / 2),
                              stream.handle());
  });
  stream.synchronize("stretching");
}

template <typename T>
void check_stretching(ScalarType type, Size size, const std::vector<T>& values) {
  SCOPED_TRACE(testing::Message() << size.w << " x " << size.h << " " << to_string(type));
  const Stream stream;
  const DeviceRows<T> in(size.w, size.h, values, stream);
  const DeviceRows<std::uint8_t> full(size.w, size.h, stream), half(size.w / 2, size.h / 2, stream),
      half_alone(size.w / 2, size.h / 2, stream, 0);
  stretch_in_bands(in.image(), type, full.plane(), half.plane(), size.h, stream);
  stretch_in_bands(in.image(), type, {}, half_alone.plane(), size.h, stream);
  const Bytes got = full.values(stream);
  expect_stretched(got, values);
  EXPECT_EQ(half.values(stream), halved(size, got));
  EXPECT_EQ(half_alone.values(stream), halved(size, got));
  const DeviceRows<std::uint8_t> banded(size.w, size.h, stream), half_banded(size.w / 2, size.h / 2, stream);
  stretch_in_bands(in.image(), type, banded.plane(), half_banded.plane(), 6, stream);
  EXPECT_EQ(banded.values(stream), got);
  EXPECT_EQ(half_banded.values(stream), halved(size, got));
}

template <typename T>
void check_stretchings(ScalarType type) {
  for (const Size size : sizes) {
    const auto count = static_cast<std::size_t>(size.w) * size.h;
    check_stretching(type, size, random_values<T>(count, 2));
    check_stretching(type, size, random_values<T>(count, 3, 100));
    check_stretching(type, size, std::vector<T>(count, T{7}));
  }
}

TEST_F(Pyramid, StretchesU8) { check_stretchings<std::uint8_t>(ScalarType::u8); }
TEST_F(Pyramid, StretchesU16) { check_stretchings<std::uint16_t>(ScalarType::u16); }
TEST_F(Pyramid, StretchesI32) { check_stretchings<std::int32_t>(ScalarType::i32); }
TEST_F(Pyramid, StretchesF32) { check_stretchings<float>(ScalarType::f32); }
TEST_F(Pyramid, StretchesF64) { check_stretchings<double>(ScalarType::f64); }

TEST_F(Pyramid, FindsExtremesAnywhere) {
  const Size size{700, 1100};
  const auto count = static_cast<std::size_t>(size.w) * size.h;
  for (const std::size_t place : {std::size_t{0}, std::size_t{699}, count / 2 + 1, count - 1}) {
    std::vector<std::uint16_t> values = random_values<std::uint16_t>(count, 4, 1000);
    for (std::uint16_t& value : values) value += 5000;
    values[place] = 65535;
    values[count - 1 - place] = 17;
    check_stretching(ScalarType::u16, size, values);
  }
}

TEST_F(Pyramid, OfNothingWritesNothing) {
  const Stream stream;
  const DeviceRows<std::uint8_t> in(0, 7, stream), line(9, 1, stream), out(4, 4, stream);
  stretch_in_bands(in.image(), ScalarType::u8, out.plane(), out.plane(), 7, stream);
  kernels::launch_halved(line.image(), out.plane(), stream.handle());
  for (const std::uint8_t value : out.values(stream)) EXPECT_EQ(value, device_poison);
}

}  // namespace
}  // namespace dic::test
