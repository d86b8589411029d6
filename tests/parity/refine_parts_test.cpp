#include <algorithm>
#include <cmath>
#include <dic/refine.hpp>
#include <vector>

#include "refine/image.hpp"
#include "support/gpu_test.hpp"
#include "support/speckle.hpp"

// Refinement of parts of subsets: GPU against CPU.
namespace dic {
namespace {

using namespace test;

constexpr int width = 260, height = 220;

double true_u(double x, double y) { return 3.3 + 0.012 * x - 0.004 * y; }
double true_v(double x, double y) { return -2.6 + 0.003 * x + 0.007 * y; }

struct Parts {
  std::vector<int> x, y;
  std::vector<SubsetPart> parts;
  std::vector<ShapeParameters> starts;

  /// Of every point the whole subset, its quarters and halves, and narrower ones; most starts are good.
  explicit Parts(int radius) {
    for (int py = 4; py < height; py += 12)
      for (int px = 4; px < width; px += 12) add_point(px, py, radius);
  }

 private:
  void add_point(int px, int py, int radius) {
    const auto point = static_cast<std::int64_t>(x.size());
    x.push_back(px);
    y.push_back(py);
    for (const int beyond : {radius, radius / 2, 0})
      for (int j = -1; j <= 1; ++j)
        for (int i = -1; i <= 1; ++i) {
          if (beyond == radius && (i != 0 || j != 0)) continue;
          ShapeParameters start;
          start.u = std::round(true_u(px, py)) + (point % 11 == 0 ? 9 : 0);
          start.v = std::round(true_v(px, py));
          parts.push_back({point, i > 0 ? -beyond : -radius, i < 0 ? beyond : radius,
                           j > 0 ? -beyond : -radius, j < 0 ? beyond : radius});
          starts.push_back(start);
        }
  }
};

Image with_hole() {
  Image roi({width, height}, ScalarType::u8);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      roi.row<std::uint8_t>(y)[x] = std::hypot(x - 120, y - 100) > 31 && x + y / 2 < 310 ? 255 : 0;
  return roi;
}

struct PartsCase {
  int subset, order;
  Interpolation interpolation;
  bool masked;

  friend std::ostream& operator<<(std::ostream& out, const PartsCase& c) {
    return out << "subset " << c.subset << ", order " << c.order << ", " << to_string(c.interpolation)
               << (c.masked ? ", masked" : "");
  }
};

class RefineParts : public GpuTest, public testing::WithParamInterface<PartsCase> {};

TEST_P(RefineParts, OnTheGpuAgreeWithTheCpu) {
  const PartsCase& c = GetParam();
  const Speckle speckle(width, height, 1.7, 5, 60);
  const auto still = [&](int x, int y) { return grey_of(speckle(x, y)); };
  const auto moved = [&](int x, int y) { return grey_of(speckle(x + true_u(x, y), y + true_v(x, y))); };
  const Image reference = noisy(image_of(width, height, moved), 2, 6),
              current = noisy(image_of(width, height, still), 2, 7);
  const Image roi = c.masked ? with_hole() : Image();
  const Parts all(c.subset / 2);
  RefineOptions options;
  options.subset = c.subset;
  options.order = c.order;
  options.interpolation = c.interpolation;
  std::vector<RefinedPoint> results[2];
  for (const bool on_gpu : {false, true}) {
    Refiner refiner(options, on_gpu ? "cuda" : "cpu", 1);
    refiner.set_reference(reference, all.x, all.y, c.masked ? roi.view() : ImageView{});
    refiner.set_current(current);
    results[on_gpu].resize(all.parts.size());
    refiner.refine_parts(all.parts, all.starts, results[on_gpu], 10);
  }
  int statuses = 0, ok = 0;
  for (std::size_t k = 0; k < all.parts.size(); ++k) {
    const RefinedPoint &cpu = results[0][k], &gpu = results[1][k];
    statuses += cpu.status != gpu.status;
    if (cpu.status != Status::ok || gpu.status != Status::ok) continue;
    ++ok;
    const SubsetPart& part = all.parts[k];
    SCOPED_TRACE(testing::Message() << all.x[part.point] << ", " << all.y[part.point] << ": " << part.left
                                    << " .. " << part.right << ", " << part.top << " .. " << part.bottom);
    ASSERT_NEAR(cpu.shape.u, gpu.shape.u, 1e-4);
    ASSERT_NEAR(cpu.shape.v, gpu.shape.v, 1e-4);
    ASSERT_NEAR(cpu.zncc, gpu.zncc, 1e-4);
    ASSERT_NEAR(cpu.residual_sd, gpu.residual_sd, 0.01);
    ASSERT_NEAR(gpu.unit_sigma_u / cpu.unit_sigma_u, 1, 1e-3);
    ASSERT_NEAR(gpu.unit_sigma_v / cpu.unit_sigma_v, 1, 1e-3);
  }
  EXPECT_LE(statuses, 1 + std::ssize(all.parts) / 1000);
  EXPECT_GT(ok, std::ssize(all.parts) * 6 / 10);
}

INSTANTIATE_TEST_SUITE_P(Parts, RefineParts,
                         testing::Values(PartsCase{31, 1, Interpolation::cubic, false},
                                         PartsCase{31, 1, Interpolation::cubic, true},
                                         PartsCase{21, 1, Interpolation::quintic, false},
                                         PartsCase{41, 2, Interpolation::cubic, false},
                                         PartsCase{41, 2, Interpolation::quintic, true},
                                         PartsCase{33, 0, Interpolation::cubic, true}));

}  // namespace
}  // namespace dic
