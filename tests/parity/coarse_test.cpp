#include <algorithm>
#include <cmath>
#include <cstring>
#include <dic/kernels/device.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "support/gpu_test.hpp"
#include "support/speckle.hpp"
#include "track/cpu/host_coarse_search.hpp"
#include "track/cuda/device_coarse_search.hpp"

// Tests the coarse-to-fine search on the GPU against that on the CPU, and both against the truth.
namespace dic::track {
namespace {

using test::GpuTest;

constexpr int width = 523, height = 461;

/// A rotation by 12 degrees and a shift, too far for the search of a subset.
std::pair<double, double> displacement(double x, double y) {
  const double a = 12 * M_PI / 180, dx = x - width / 2, dy = y - height / 2;
  return {17.4 + (std::cos(a) - 1) * dx - std::sin(a) * dy, -9.2 + std::sin(a) * dx + (std::cos(a) - 1) * dy};
}

struct Pair {
  Image reference, current;
};

/// The pixel X of `reference` lies at X + displacement(X) in `current`.
Pair make_pair(ScalarType type) {
  const test::Speckle speckle(width, height, 4, 11, 200);
  const auto moved = [&](int x, int y) {
    const auto [u, v] = displacement(x, y);
    return test::grey_of(speckle(x + u, y + v));
  };
  const auto still = [&](int x, int y) { return test::grey_of(speckle(x, y)); };
  const auto as = [&](Image image, unsigned seed) {
    image = test::noisy(image, 3, seed);
    if (type == ScalarType::u8) return test::converted<std::uint8_t>(image, type);
    if (type == ScalarType::u16) return test::converted<std::uint16_t>(image, type, 200);
    return image;
  };
  return {as(test::image_of(width, height, moved), 1), as(test::image_of(width, height, still), 2)};
}

class OnDevice {
 public:
  explicit OnDevice(const Image& image) {
    const ImageView view = image;
    kernels::upload(memory_.reserve(view.row_bytes * view.height), view.data, view.row_bytes * view.height,
                    stream_);
    stream_.synchronize("upload");
    view_ = view;
    view_.data = memory_.data();
  }
  const ImageView& view() const { return view_; }

 private:
  kernels::Stream stream_;
  kernels::DeviceBuffer memory_;
  ImageView view_;
};

CoarseField on_cpu(const Pair& pair, ImageView roi) {
  Correlator correlator("cpu", 1);
  core::ThreadPool pool(1);
  return HostCoarseSearch(pair.reference, roi, pool).run(correlator, pair.current);
}

/// Searches twice, because everything is reused for the next frame.
CoarseField on_gpu(const Pair& pair, ImageView roi) {
  const kernels::Stream stream;
  const OnDevice reference(pair.reference), current(pair.current);
  cuda::SubsetSearch subsets(kernels::find_devices().front());
  cuda::CoarseMemory memory;
  core::ThreadPool pool(1);
  cuda::CoarseReference side(reference.view(), roi, pool, memory, stream);
  cuda::DeviceCoarseSearch search(subsets);
  search.run(side, reference.view(), stream);
  return search.run(side, current.view(), stream);
}

void expect_same(const CoarseField& a, const CoarseField& b) {
  EXPECT_EQ(a.confidence, b.confidence);
  EXPECT_EQ(a.reduction, b.reduction);
  ASSERT_EQ(std::pair(a.nx, a.ny), std::pair(b.nx, b.ny));
  EXPECT_EQ(std::pair(a.x0, a.y0), std::pair(b.x0, b.y0));
  for (std::size_t k = 0; k < a.u.size(); ++k) {
    ASSERT_NEAR(a.u[k], b.u[k], 1e-3) << "node " << k;
    ASSERT_NEAR(a.v[k], b.v[k], 1e-3) << "node " << k;
  }
}

void expect_true(const CoarseField& field) {
  EXPECT_GT(field.confidence, 0.8);
  EXPECT_EQ(field.reduction, 2);
  for (const auto& [x, y] : {std::pair{150, 120}, {260, 230}, {380, 330}, {200, 340}}) {
    const auto [u, v] = displacement(x, y);
    const CoarseShift found = field.at(x, y);
    EXPECT_NEAR(found.u, u, 2) << x << ", " << y;
    EXPECT_NEAR(found.v, v, 2) << x << ", " << y;
  }
}

void check(ScalarType type, const Image& roi) {
  const Pair pair = make_pair(type);
  const ImageView view = roi.empty() ? ImageView{} : roi.view();
  const CoarseField cpu = on_cpu(pair, view), gpu = on_gpu(pair, view);
  expect_true(cpu);
  expect_same(cpu, gpu);
}

using CoarseOnGpu = GpuTest;

TEST_F(CoarseOnGpu, FindsWhatTheCpuFinds) {
  for (const ScalarType type : {ScalarType::u8, ScalarType::u16, ScalarType::f32}) check(type, {});
}

template <typename Inside>
Image mask_of(const Inside& inside) {
  return test::converted<std::uint8_t>(
      test::image_of(width, height, [&](int x, int y) { return inside(x, y) ? 255.0 : 0.0; }),
      ScalarType::u8);
}
TEST_F(CoarseOnGpu, FindsWhatTheCpuFindsInARectangle) {
  check(ScalarType::u8, mask_of([](int x, int y) { return x > 50 && x < 470 && y > 31 && y < 433; }));
}

TEST_F(CoarseOnGpu, FindsWhatTheCpuFindsUnderAMask) {
  check(ScalarType::u8, mask_of([](int x, int y) {
          return std::hypot(x - 260, y - 230) < 220 && std::hypot(x - 300, y - 200) > 30;
        }));
}

}  // namespace
}  // namespace dic::track
