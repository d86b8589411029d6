#include <algorithm>
#include <cmath>
#include <dic/track.hpp>

#include "support/gpu_test.hpp"
#include "support/speckle.hpp"

// Tests a whole measurement on the GPU against the CPU, and both against the known motion.
namespace dic {
namespace {

constexpr int width = 330, height = 260;

double true_u(double x, double y) { return 6.4 + 0.004 * x - 0.002 * y; }
double true_v(double x, double y) { return -3.7 + 0.001 * x + 0.003 * y; }

/// The reference and the current image.
struct Pair {
  Image reference, current;

  Pair() {
    const test::Speckle speckle(width, height, 2.2, 9);
    const auto grey = [&](double x, double y) { return test::grey_of(speckle(x, y)); };
    const auto moved = [&](double x, double y) {
      // origin of the material at (x, y); the iteration converges because slopes are small
      double from_x = x, from_y = y;
      for (int i = 0; i < 20; ++i) {
        const double u = true_u(from_x, from_y), v = true_v(from_x, from_y);
        from_x = x - u, from_y = y - v;
      }
      return grey(from_x, from_y);
    };
    reference = test::converted<std::uint8_t>(test::image_of(width, height, grey), ScalarType::u8);
    current = test::converted<std::uint8_t>(test::image_of(width, height, moved), ScalarType::u8);
  }
};

/// A ROI with a slanted edge and a round hole, which cuts subsets in many ways in addition to the border.
Roi slanted_roi_with_hole() {
  Roi roi;
  roi.mask = Image({width, height}, ScalarType::u8);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      roi.mask.row<std::uint8_t>(y)[x] = x + y / 3 < 300 && std::hypot(x - 130, y - 120) > 37 ? 255 : 0;
  return roi;
}

using ParityTrack = test::GpuTest;

TEST_F(ParityTrack, ARegionOfInterestIsMeasuredAlike) {
  const Pair pair;
  Field fields[2];
  Grid grid;
  for (const int on_gpu : {0, 1}) {
    TrackOptions options;
    options.refine.subset = 31;
    options.step = 3;
    options.device = on_gpu ? "cuda" : "cpu";
    Tracker tracker(options, pair.reference.view(), slanted_roi_with_hole());
    fields[on_gpu] = tracker.track(pair.current.view()).field;
    grid = tracker.grid();
  }
  std::int64_t measured = 0, different = 0;
  for (std::int64_t k = 0; k < grid.nodes(); ++k) {
    if (!grid.inside[k]) continue;
    const Status status = fields[0].status[k];
    if (status != fields[1].status[k]) ++different;
    if (status != Status::ok || fields[1].status[k] != Status::ok) continue;
    ++measured;
    const double x = grid.x(static_cast<int>(k % grid.nx)), y = grid.y(static_cast<int>(k / grid.nx));
    for (const Field& field : fields) {
      EXPECT_NEAR(field.u[k], true_u(x, y), 0.05) << "at " << x << ", " << y;
      EXPECT_NEAR(field.v[k], true_v(x, y), 0.05) << "at " << x << ", " << y;
    }
    EXPECT_NEAR(fields[0].u[k], fields[1].u[k], 1e-4) << "at " << x << ", " << y;
    EXPECT_NEAR(fields[0].v[k], fields[1].v[k], 1e-4) << "at " << x << ", " << y;
    const float exx[] = {fields[0].strain.exx[k], fields[1].strain.exx[k]};
    EXPECT_EQ(std::isnan(exx[0]), std::isnan(exx[1])) << "at " << x << ", " << y;
    if (!std::isnan(exx[0])) {
      EXPECT_NEAR(exx[0], exx[1], 1e-4) << "at " << x << ", " << y;
    }
  }
  EXPECT_GT(measured, 6000);
  EXPECT_LE(different, 1);
}

TEST_F(ParityTrack, ACameraCorrectsAlike) {
  const Pair pair;
  Field fields[2];
  for (const int on_gpu : {0, 1}) {
    TrackOptions options;
    options.refine.subset = 31;
    options.camera = Camera({{width, height},
                             Lens{600, 600, 170, 120, -0.2, 0.05},
                             SpecimenPlane{{12, 0, 165, 0, 12, 130, 0, 0.005, 1}}});
    options.device = on_gpu ? "cuda" : "cpu";
    Tracker tracker(options, pair.reference.view());
    fields[on_gpu] = tracker.track(pair.current.view()).field;
  }
  std::int64_t measured = 0, different = 0;
  for (std::size_t k = 0; k < fields[0].status.size(); ++k) {
    if (fields[0].status[k] != fields[1].status[k]) ++different;
    if (fields[0].status[k] != Status::ok || fields[1].status[k] != Status::ok) continue;
    ++measured;
    EXPECT_EQ(fields[0].positions->x[k], fields[1].positions->x[k]);
    EXPECT_NEAR(fields[0].u[k], fields[1].u[k], 1e-4);
    EXPECT_NEAR(fields[0].v[k], fields[1].v[k], 1e-4);
    EXPECT_NEAR(fields[0].image_u[k], fields[1].image_u[k], 1e-4);
    EXPECT_NEAR(fields[0].sigma_u[k] / fields[1].sigma_u[k], 1, 0.02);
    const float exx[] = {fields[0].strain.exx[k], fields[1].strain.exx[k]};
    EXPECT_EQ(std::isnan(exx[0]), std::isnan(exx[1]));
    if (!std::isnan(exx[0])) {
      EXPECT_NEAR(exx[0], exx[1], 1e-4);
    }
  }
  EXPECT_GT(measured, 2000);
  EXPECT_LE(different, 40);  // only the CPU measures subsets cut by the border
}

}  // namespace
}  // namespace dic
