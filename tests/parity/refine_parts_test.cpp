#include <algorithm>
#include <cmath>
#include <dic/refine.hpp>
#include <dic/shared/split_rules.hpp>
#include <vector>

#include "refine/image.hpp"
#include "support/gpu_test.hpp"
#include "support/speckle.hpp"

// Tests the refinement of parts of subsets on the GPU against the CPU.
namespace dic {
namespace {

using namespace test;

constexpr int width = 260, height = 220;

/// A small deformation, or a rotation by 35 degrees about the middle.
struct Deformation {
  bool turned = false;

  ShapeParameters at(double x, double y) const {
    ShapeParameters s;
    if (turned) {
      const double c = std::cos(0.61), sine = std::sin(0.61);
      s.ux = s.vy = c - 1;
      s.uy = -sine;
      s.vx = sine;
      s.u = s.ux * (x - width / 2) + s.uy * (y - height / 2);
      s.v = s.vx * (x - width / 2) + s.vy * (y - height / 2);
    } else {
      s.ux = 0.012;
      s.uy = -0.004;
      s.vx = 0.003;
      s.vy = 0.007;
      s.u = 3.3 + s.ux * x + s.uy * y;
      s.v = -2.6 + s.vx * x + s.vy * y;
    }
    return s;
  }
};

struct Parts {
  std::vector<int> x, y;
  std::vector<SubsetPart> parts;
  std::vector<ShapeParameters> starts;

  /// Parts of every point: the whole subset and its parts in all directions, with and without the pixels that
  /// leave the current image. Most starts are good.
  Parts(int radius, const Deformation& deformation) {
    for (int py = 4; py < height; py += 12)
      for (int px = 4; px < width; px += 12) add_point(px, py, radius, deformation);
  }

 private:
  void add_point(int px, int py, int radius, const Deformation& deformation) {
    const auto point = static_cast<std::int64_t>(x.size());
    x.push_back(px);
    y.push_back(py);
    ShapeParameters start = deformation.at(px, py);
    start.u = std::round(4 * start.u) / 4 + (point % 11 == 0 ? 9 : 0);
    start.v = std::round(4 * start.v) / 4;
    for (const int round : {0, 3, 4, 6})
      for (int k = 0; k < (round == 0 ? 2 : track::kDirections); ++k) {
        const track::SquareSubset subset{point, px, py, radius};
        SubsetPart part = track::part_towards(subset, track::direction(k), round);
        if (k % 3 != 1) track::clip_to_current(part, subset, start, {width, height});
        if (shrink_to_pixels(part) == 0) continue;
        parts.push_back(part);
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
  bool masked, turned = false;

  friend std::ostream& operator<<(std::ostream& out, const PartsCase& c) {
    return out << "subset " << c.subset << ", order " << c.order << ", " << to_string(c.interpolation)
               << (c.masked ? ", masked" : "") << (c.turned ? ", turned" : "");
  }
};

class RefineParts : public GpuTest, public testing::WithParamInterface<PartsCase> {};

TEST_P(RefineParts, OnTheGpuAgreeWithTheCpu) {
  const PartsCase& c = GetParam();
  const Speckle speckle(width, height, 1.7, 5, 70);
  const auto still = [&](int x, int y) { return grey_of(speckle(x, y)); };
  const Deformation deformation{c.turned};
  const auto moved = [&](int x, int y) {
    const ShapeParameters s = deformation.at(x, y);
    return grey_of(speckle(x + s.u, y + s.v));
  };
  const Image reference = noisy(image_of(width, height, moved), 2, 6),
              current = noisy(image_of(width, height, still), 2, 7);
  const Image roi = c.masked ? with_hole() : Image();
  const Parts all(c.subset / 2, deformation);
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
  int statuses = 0, ok = 0, oblique = 0;
  for (std::size_t k = 0; k < all.parts.size(); ++k) {
    const RefinedPoint &cpu = results[0][k], &gpu = results[1][k];
    statuses += cpu.status != gpu.status;
    if (cpu.status != Status::ok || gpu.status != Status::ok) continue;
    ++ok;
    oblique += !all.parts[k].is_rectangle();
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
  EXPECT_GT(ok, std::ssize(all.parts) * (c.turned ? 3 : 6) / 10);
  EXPECT_GT(oblique, std::ssize(all.parts) / 4);
}

INSTANTIATE_TEST_SUITE_P(Parts, RefineParts,
                         testing::Values(PartsCase{31, 1, Interpolation::cubic, false},
                                         PartsCase{31, 1, Interpolation::cubic, true},
                                         PartsCase{21, 1, Interpolation::quintic, false},
                                         PartsCase{41, 2, Interpolation::cubic, false},
                                         PartsCase{41, 2, Interpolation::quintic, true},
                                         PartsCase{33, 0, Interpolation::cubic, true},
                                         PartsCase{31, 1, Interpolation::cubic, false, true},
                                         PartsCase{71, 1, Interpolation::cubic, true, true},
                                         PartsCase{41, 2, Interpolation::quintic, false, true}));

}  // namespace
}  // namespace dic
