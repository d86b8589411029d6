#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dic/image_io.hpp>
#include <dic/track.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "support/gpu_test.hpp"
#include "support/parameter_names.hpp"

// Tests the refinement on the GPU against that on the CPU, with the real images in the folder DIC_REAL_DATA.
// Both start from the field that the CPU tracked.
namespace dic {
namespace {

struct PairOfFiles {
  const char *reference, *current;
  /// Images with saturated pixels: rounding decides which pixels of the other image a saturated one covers,
  /// so one point in 500 may differ by more than 1e-4 px, by the weight of a pixel.
  bool saturated = false;
};
void PrintTo(const PairOfFiles& pair, std::ostream* out) { *out << pair.current; }

class RealImages : public test::GpuTest, public testing::WithParamInterface<PairOfFiles> {
 protected:
  void SetUp() override {
    const auto folder = test::real_data();
    if (!folder) GTEST_SKIP() << test::no_real_data;
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    reference_ = read_image(*folder / GetParam().reference);
    current_ = read_image(*folder / GetParam().current);
  }

  Image reference_, current_;
};

/// The measured points, and whole-pixel starts with the slopes of the tracked field.
struct Starts {
  std::vector<int> x, y;
  std::vector<std::int64_t> points;
  std::vector<ShapeParameters> shapes;

  Starts(const Grid& grid, const Field& field) {
    const auto usable = [&](std::int64_t node) { return has_values(field.status[node]); };
    const auto slope = [&](std::span<const double> values, std::int64_t node, std::int64_t step,
                           bool inside) {
      if (!inside || !usable(node - step) || !usable(node + step)) return 0.0;
      return (values[node + step] - values[node - step]) / (2 * grid.step);
    };
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const std::int64_t node = static_cast<std::int64_t>(j) * grid.nx + i;
        if (!usable(node)) continue;
        const bool along = i > 0 && i<grid.nx - 1, down = j> 0 && j < grid.ny - 1;
        points.push_back(std::ssize(points));
        x.push_back(grid.x(i));
        y.push_back(grid.y(j));
        ShapeParameters& s = shapes.emplace_back();
        s.u = std::round(field.u[node]);
        s.v = std::round(field.v[node]);
        s.ux = slope(field.u, node, 1, along);
        s.uy = slope(field.u, node, grid.nx, down);
        s.vx = slope(field.v, node, 1, along);
        s.vy = slope(field.v, node, grid.nx, down);
      }
  }
};

std::vector<RefinedPoint> refine_on(const std::string& device, const RefineOptions& options,
                                    const Image& reference, const Image& current, const Starts& starts) {
  Refiner refiner(options, device);
  refiner.set_reference(reference, starts.x, starts.y);
  refiner.set_current(current);
  std::vector<RefinedPoint> out(starts.points.size());
  refiner.refine(starts.points, starts.shapes, out);
  return out;
}

TEST_P(RealImages, AgreeWithTheCpu) {
  TrackOptions options;
  options.device = "cpu";
  options.step = 12;
  Tracker tracker(options, reference_);
  const Field field = tracker.track(current_).field;
  const Starts starts(tracker.grid(), field);
  for (const int order : {1, 2})
    for (const auto interpolation : {Interpolation::cubic, Interpolation::quintic}) {
      options.refine.order = order;
      options.refine.interpolation = interpolation;
      const auto cpu = refine_on("cpu", options.refine, reference_, current_, starts);
      const auto gpu = refine_on("cuda", options.refine, reference_, current_, starts);
      int other_verdict = 0, lost_otherwise = 0, ok = 0, far = 0;
      double largest = 0;  // px
      for (std::size_t k = 0; k < cpu.size(); ++k) {
        const bool on_cpu = cpu[k].status == Status::ok, on_gpu = gpu[k].status == Status::ok;
        other_verdict += on_cpu != on_gpu;
        lost_otherwise += !on_cpu && !on_gpu && cpu[k].status != gpu[k].status;
        if (!on_cpu || !on_gpu) continue;
        ++ok;
        const double apart =
            std::max(std::abs(cpu[k].shape.u - gpu[k].shape.u), std::abs(cpu[k].shape.v - gpu[k].shape.v));
        far += apart > 1e-4;
        largest = std::max(largest, apart);
      }
      const std::string setting =
          "order " + std::to_string(order) + ", " + std::string(to_string(interpolation));
      std::printf("%s, %s: %zu points, %d measured on one side only, %d lost otherwise, largest %.1e px\n",
                  GetParam().current, setting.c_str(), cpu.size(), other_verdict, lost_otherwise, largest);
      SCOPED_TRACE(setting);
      EXPECT_GT(ok, static_cast<int>(cpu.size() / 2));
      EXPECT_LE(largest, GetParam().saturated ? 1e-3 : 1e-4);
      EXPECT_LE(far, static_cast<int>(cpu.size() / 500));
      // Among so few points, one may lie on a limit, for example a last step as long as the tolerance.
      EXPECT_LE(other_verdict, std::max<std::size_t>(1, cpu.size() / 10000));
      // Iterations that do not converge from whole pixels wander, and rounding decides how they end.
      EXPECT_LE(lost_otherwise, 1 + cpu.size() / 1000);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Files, RealImages,
    testing::Values(PairOfFiles{"challenge14/reference.tif", "challenge14/L1.tif"},
                    PairOfFiles{"challenge14/reference.tif", "challenge14/L3.tif"},
                    PairOfFiles{"challenge14/reference.tif", "challenge14/L5.tif"},
                    PairOfFiles{"challenge5/reference.tif", "challenge5/shift_0.10.tif"},
                    PairOfFiles{"patterns/Pattern_1.bmp", "patterns/Pattern_1_Translation.bmp", true},
                    PairOfFiles{"patterns/Pattern_1.bmp", "patterns/Pattern_1_Tension.bmp", true},
                    PairOfFiles{"patterns/Pattern_2.bmp", "patterns/Pattern_2_Shear.bmp"},
                    PairOfFiles{"utn/utn_00.bmp", "utn/utn_30.bmp"},
                    PairOfFiles{"oht/oht_cfrp_0.bmp", "oht/oht_cfrp_4.bmp"},
                    PairOfFiles{"oht_sequence/oht_cfrp_00.tiff", "oht_sequence/oht_cfrp_06.tiff"},
                    PairOfFiles{"frac16/img_0000 .png", "frac16/img_0030 .png"}),
    test::PrintedName());

}  // namespace
}  // namespace dic
