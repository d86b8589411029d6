#include <cmath>
#include <cstring>
#include <dic/error.hpp>
#include <dic/kernels/filter.hpp>

#include "kernels/device_data.hpp"
#include "support/gpu_test.hpp"

// Tests convolutions and gradients against double loops in float64.
namespace dic::test {
namespace {

using kernels::Border;
using kernels::GradientOf;
using kernels::Stream;

struct Size {
  int w, h;
};
constexpr Size sizes[] = {{1, 1},   {1, 150},  {150, 1},  {2, 3},   {7, 5},
                          {64, 64}, {65, 129}, {131, 67}, {300, 40}};

template <typename T>
constexpr ScalarType type_of = std::is_same_v<T, std::uint8_t>    ? ScalarType::u8
                               : std::is_same_v<T, std::uint16_t> ? ScalarType::u16
                                                                  : ScalarType::f32;

/// Pixel of the image continued according to the border rule, step by step from the definition.
template <typename T>
struct Plane {
  Size size;
  const std::vector<T>& values;
  Border border;

  double at(int x, int y) const {
    return beyond(size.h, y, [&](int j) {
      return beyond(size.w, x, [&](int i) {
        return static_cast<double>(values[static_cast<std::size_t>(j) * size.w + i]);
      });
    });
  }

 private:
  template <typename At>
  double beyond(int n, int k, const At& inside) const {
    if (k >= 0 && k < n) return inside(k);
    const int end = k < 0 ? 0 : n - 1;
    if (border == Border::replicate || n == 1) return inside(end);
    const double reflected = beyond(n, 2 * end - k, inside);
    return border == Border::mirror ? reflected : 2 * inside(end) - reflected;
  }
};

/// A sum of products, and the sum of their magnitudes, which bounds the rounding.
struct Sum {
  double value = 0, magnitude = 0;
  void add(double weight, double element) {
    value += weight * element;
    magnitude += std::abs(weight * element);
  }
};

void expect_close(const std::vector<float>& got, const std::vector<Sum>& want, int products) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i].value, (products + 4) * 6e-8 * want[i].magnitude) << "pixel " << i;
}

template <typename T>
std::vector<Sum> convolved(const Plane<T>& in, const std::vector<float>& tx, const std::vector<float>& ty) {
  const int rx = static_cast<int>(tx.size()) / 2, ry = static_cast<int>(ty.size()) / 2;
  std::vector<Sum> out;
  for (int y = 0; y < in.size.h; ++y) {
    for (int x = 0; x < in.size.w; ++x) {
      Sum sum;
      for (int j = -ry; j <= ry; ++j)
        for (int i = -rx; i <= rx; ++i) sum.add(double{tx[rx + i]} * ty[ry + j], in.at(x - i, y - j));
      out.push_back(sum);
    }
  }
  return out;
}

template <typename T>
void check_convolution(Size size, Border border, int nx, int ny) {
  SCOPED_TRACE(testing::Message() << size.w << " x " << size.h << ", border " << static_cast<int>(border)
                                  << ", taps " << nx << " x " << ny);
  const Stream stream;
  const auto values = random_values<T>(static_cast<std::size_t>(size.w) * size.h, 1);
  const auto tx = random_values<float>(nx, 2), ty = random_values<float>(ny, 3);
  const DeviceRows<T> in(size.w, size.h, values, stream);
  const DeviceRows<float> out(size.w, size.h, stream, 5), again(size.w, size.h, stream, 0);
  for (const auto* target : {&out, &again})
    kernels::launch_convolution(in.image(), type_of<T>, tx, ty, border, target->plane(), stream.handle());
  const std::vector<float> got = out.values(stream);
  expect_close(got, convolved(Plane<T>{size, values, border}, tx, ty), nx + ny);
  EXPECT_EQ(got, again.values(stream)) << "not repeatable";
}

using Convolution = GpuTest;

template <typename T>
void check_convolutions() {
  for (const Size size : sizes)
    for (const Border border : {Border::replicate, Border::mirror, Border::point_reflection})
      for (const auto& [nx, ny] : {std::pair{1, 1}, {3, 3}, {5, 1}, {1, 9}, {7, 19}})
        check_convolution<T>(size, border, nx, ny);
  check_convolution<T>({70, 90}, Border::mirror, 63, 63);
  check_convolution<T>({9, 200}, Border::point_reflection, 63, 3);
}

TEST_F(Convolution, U8) { check_convolutions<std::uint8_t>(); }
TEST_F(Convolution, U16) { check_convolutions<std::uint16_t>(); }
TEST_F(Convolution, F32) { check_convolutions<float>(); }

TEST_F(Convolution, OfNothingWritesNothing) {
  const Stream stream;
  const DeviceRows<float> in(0, 7, stream), out(4, 4, stream);
  kernels::launch_convolution(in.image(), ScalarType::f32, {{1.0F}}, {{1.0F}}, Border::mirror, out.plane(),
                              stream.handle());
  kernels::launch_gradient(in.image(), ScalarType::f32, GradientOf::image, out.plane(), out.plane(),
                           stream.handle());
  std::uint32_t poison = 0xa5a5a5a5;
  for (const float value : out.values(stream)) EXPECT_EQ(std::memcmp(&value, &poison, 4), 0);
}

/// Centred B-spline of this degree, by the recursion of Cox and de Boor.
double b_spline(int degree, double t) {
  if (degree == 0) return t >= -0.5 && t < 0.5 ? 1 : 0;
  const double half = (degree + 1) / 2.0;
  return ((half + t) * b_spline(degree - 1, t + 0.5) + (half - t) * b_spline(degree - 1, t - 0.5)) / degree;
}
double b_spline_slope(int degree, double t) {
  return b_spline(degree - 1, t + 0.5) - b_spline(degree - 1, t - 0.5);
}

struct Gradient {
  std::vector<Sum> dx, dy;
};
template <typename T>
Gradient gradient(const Plane<T>& in, GradientOf of) {
  const int degree = of == GradientOf::quintic_spline ? 5 : 3;
  const double scale = of == GradientOf::image ? 1 : of == GradientOf::cubic_spline ? 36 : 14400;
  const auto value = [&](int k) { return of == GradientOf::image ? double(k == 0) : b_spline(degree, -k); };
  const auto slope = [&](int k) {
    return of == GradientOf::image ? 0.5 * k * (std::abs(k) <= 1) : b_spline_slope(degree, -k);
  };
  Gradient out;
  for (int y = 0; y < in.size.h; ++y) {
    for (int x = 0; x < in.size.w; ++x) {
      Sum dx, dy;
      for (int j = -2; j <= 2; ++j) {
        for (int i = -2; i <= 2; ++i) {
          const double element = in.at(x + i, y + j);
          dx.add(scale * slope(i) * value(j), element);
          dy.add(scale * value(i) * slope(j), element);
        }
      }
      out.dx.push_back(dx);
      out.dy.push_back(dy);
    }
  }
  return out;
}

template <typename T>
void check_gradient(GradientOf of) {
  for (const Size size : sizes) {
    SCOPED_TRACE(testing::Message() << size.w << " x " << size.h << " of " << static_cast<int>(of));
    const Stream stream;
    const auto values = random_values<T>(static_cast<std::size_t>(size.w) * size.h, 4);
    const DeviceRows<T> in(size.w, size.h, values, stream);
    const DeviceRows<float> dx(size.w, size.h, stream), dy(size.w, size.h, stream, 0);
    kernels::launch_gradient(in.image(), type_of<T>, of, dx.plane(), dy.plane(), stream.handle());
    const Gradient want = gradient(Plane<T>{size, values, Border::point_reflection}, of);
    expect_close(dx.values(stream), want.dx, 25);
    expect_close(dy.values(stream), want.dy, 25);
  }
}

using GradientTest = GpuTest;

TEST_F(GradientTest, OfImages) {
  check_gradient<std::uint8_t>(GradientOf::image);
  check_gradient<std::uint16_t>(GradientOf::image);
  check_gradient<float>(GradientOf::image);
}
TEST_F(GradientTest, OfSplines) {
  check_gradient<float>(GradientOf::cubic_spline);
  check_gradient<float>(GradientOf::quintic_spline);
}

}  // namespace
}  // namespace dic::test
