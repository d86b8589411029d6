#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <dic/image_io.hpp>
#include <dic/track.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/gpu.hpp"

// The refinement on the GPU against that on the CPU, on the real pictures of the folder that DIC_REAL_DATA
// names. Both start from what the CPU has tracked.
namespace dic {
namespace {

/// Shares of the points that may differ, besides one: order 2 where the 30 iterations end, and where subsets
/// have little contrast.
struct PairOfFiles {
  const char *reference, *current;
  double statuses = 5e-4;
  double far = 0;  ///< by more than 1e-4 px
};
void PrintTo(const PairOfFiles& pair, std::ostream* out) { *out << pair.current; }

class RealPictures : public test::GpuTest, public testing::WithParamInterface<PairOfFiles> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("DIC_REAL_DATA");
    if (!folder) GTEST_SKIP() << "DIC_REAL_DATA does not name the folder of the real pictures";
    GpuTest::SetUp();
    if (IsSkipped()) return;
    reference_ = read_image(std::filesystem::path(folder) / GetParam().reference);
    current_ = read_image(std::filesystem::path(folder) / GetParam().current);
  }

  Image reference_, current_;
};

/// Whole-pixel starts with the slopes of a tracked field; points that were lost start at rest.
std::vector<ShapeParameters> starts_of(const Grid& grid, const Field& field) {
  std::vector<ShapeParameters> out(grid.nodes());
  const auto usable = [&](std::int64_t node) { return has_values(field.status[node]); };
  const auto slope = [&](const std::vector<double>& values, std::int64_t node, std::int64_t step,
                         bool inside) {
    if (!inside || !usable(node - step) || !usable(node + step)) return 0.0;
    return (values[node + step] - values[node - step]) / (2 * grid.step);
  };
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::int64_t node = static_cast<std::int64_t>(j) * grid.nx + i;
      if (!usable(node)) continue;
      const bool along = i > 0 && i<grid.nx - 1, down = j> 0 && j < grid.ny - 1;
      ShapeParameters& s = out[node];
      s.u = std::round(field.u[node]);
      s.v = std::round(field.v[node]);
      s.ux = slope(field.u, node, 1, along);
      s.uy = slope(field.u, node, grid.nx, down);
      s.vx = slope(field.v, node, 1, along);
      s.vy = slope(field.v, node, grid.nx, down);
    }
  return out;
}

std::vector<RefinedPoint> refine_on(const std::string& device, const RefineOptions& options,
                                    const Image& reference, const Image& current, const Grid& grid,
                                    const std::vector<ShapeParameters>& starts) {
  std::vector<int> x, y;
  std::vector<std::int64_t> points;
  for (std::int64_t node = 0; node < grid.nodes(); ++node) {
    x.push_back(grid.x(static_cast<int>(node % grid.nx)));
    y.push_back(grid.y(static_cast<int>(node / grid.nx)));
    points.push_back(node);
  }
  Refiner refiner(options, 0, device);
  refiner.set_reference(reference, x, y);
  refiner.set_current(current);
  std::vector<RefinedPoint> out(points.size());
  refiner.refine(points, starts, out);
  return out;
}

TEST_P(RealPictures, AgreeWithTheCpu) {
  TrackOptions options;
  options.device = "cpu";
  options.step = 12;
  Tracker tracker(options, reference_);
  const Field field = tracker.track(current_);
  const auto starts = starts_of(tracker.grid(), field);
  for (const int order : {1, 2})
    for (const auto interpolation : {Interpolation::cubic, Interpolation::quintic}) {
      options.refine.order = order;
      options.refine.interpolation = interpolation;
      const auto cpu = refine_on("cpu", options.refine, reference_, current_, tracker.grid(), starts);
      const auto gpu = refine_on("cuda", options.refine, reference_, current_, tracker.grid(), starts);
      int statuses = 0, far = 0, ok = 0;
      for (std::size_t k = 0; k < cpu.size(); ++k) {
        statuses += cpu[k].status != gpu[k].status;
        if (cpu[k].status != Status::ok || gpu[k].status != Status::ok) continue;
        ++ok;
        far += std::max(std::abs(cpu[k].shape.u - gpu[k].shape.u),
                        std::abs(cpu[k].shape.v - gpu[k].shape.v)) > 1e-4;
      }
      SCOPED_TRACE("order " + std::to_string(order) + ", " + std::string(to_string(interpolation)));
      EXPECT_GT(ok, static_cast<int>(cpu.size() / 4));
      const auto points = static_cast<double>(cpu.size());
      EXPECT_LE(statuses, 1 + GetParam().statuses * points);
      EXPECT_LE(far, GetParam().far * points);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Files, RealPictures,
    testing::Values(PairOfFiles{"challenge14/reference.tif", "challenge14/L1.tif"},
                    PairOfFiles{"challenge14/reference.tif", "challenge14/L3.tif"},
                    PairOfFiles{"challenge14/reference.tif", "challenge14/L5.tif"},
                    PairOfFiles{"challenge5/reference.tif", "challenge5/shift_0.10.tif"},
                    PairOfFiles{"patterns/Pattern_1.bmp", "patterns/Pattern_1_Translation.bmp"},
                    PairOfFiles{"patterns/Pattern_1.bmp", "patterns/Pattern_1_Tension.bmp"},
                    PairOfFiles{"patterns/Pattern_2.bmp", "patterns/Pattern_2_Shear.bmp"},
                    PairOfFiles{"utn/utn_00.bmp", "utn/utn_30.bmp"},
                    PairOfFiles{"oht/oht_cfrp_0.bmp", "oht/oht_cfrp_4.bmp"},
                    PairOfFiles{"oht_sequence/oht_cfrp_00.tiff", "oht_sequence/oht_cfrp_06.tiff", 1e-3},
                    PairOfFiles{"frac16/img_0000 .png", "frac16/img_0030 .png", 1e-2, 1e-3}));

}  // namespace
}  // namespace dic
