#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/image_io.hpp>
#include <dic/synth.hpp>
#include <dic/track.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numbers>
#include <sstream>
#include <vector>

#include "accuracy/accuracy_support.hpp"
#include "support/requirements.hpp"

// Tests real images in the folder DIC_REAL_DATA.
namespace dic {
namespace {

using namespace test;

class RealImages : public testing::Test {
 protected:
  void SetUp() override {
    const auto folder = test::real_data();
    if (!folder) GTEST_SKIP() << test::no_real_data;
    folder_ = *folder;
  }
  Image read(const std::string& name) const { return read_image(folder_ / name); }

  std::filesystem::path folder_;
};

/// truth.csv of challenge14: column 0 is x, then u and exx of L1, L3, L5.
std::vector<double> truth_of_challenge14(const std::filesystem::path& path, int column) {
  std::ifstream file(path);
  std::vector<double> u;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string field;
    for (int k = 0; k <= column; ++k) std::getline(fields, field, ',');
    u.push_back(std::stod(field));
  }
  return u;
}

TEST_F(RealImages, Challenge14LosesNoPointAndReachesTheRmse) {
  const Image reference = read("challenge14/reference.tif");
  Tracker tracker(track_options(), reference);
  const Scene scene{tracker.grid(), reference.width(), reference.height()};
  const struct {
    std::string name;
    int column;
    double rmse;
  } frames[] = {{"L1", 1, 0.0125}, {"L3", 3, 0.0125}, {"L5", 5, 0.0134}};
  for (const auto& frame : frames) {
    const auto truth = truth_of_challenge14(folder_ / "challenge14/truth.csv", frame.column);
    const Field field = tracker.track(read("challenge14/" + frame.name + ".tif")).field;
    const Errors e = interior_errors(scene, field, [&](double x, double) {
      return Displacement{truth[static_cast<std::size_t>(x)], 0};
    });
    EXPECT_EQ(e.ok, e.points) << frame.name;
    EXPECT_LE(e.u.rms(), frame.rmse) << frame.name;
    EXPECT_LE(e.v.rms(), frame.rmse) << frame.name;
    EXPECT_NEAR(e.ratio_u.rms(), 1, 0.1) << frame.name;
  }
}

TEST_F(RealImages, Challenge14ColumnMeansOfOrder2) {
  const auto truth = truth_of_challenge14(folder_ / "challenge14/truth.csv", 5);
  const Measured m =
      track_pair(track_options(51, 2), read("challenge14/reference.tif"), read("challenge14/L5.tif"));
  std::vector<Moments> columns(m.scene.grid.nx);
  each_node(
      m.scene, [&](int i, int j) { return m.scene.interior(i, j); },
      [&](int i, int, std::int64_t n) {
        ASSERT_EQ(m.field.status[n], Status::ok);
        columns[i].add(m.field.u[n] - truth[m.scene.grid.x(i)]);
      });
  Moments means;
  for (const Moments& column : columns)
    if (column.n > 0) means.add(column.mean());
  EXPECT_LE(means.rms(), 0.0040);
}

TEST_F(RealImages, Challenge5SurvivesTheChangeOfLighting) {
  const Image reference = read("challenge5/reference.tif");
  for (auto interpolation : {Interpolation::cubic, Interpolation::quintic}) {
    TrackOptions options = track_options();
    options.refine.interpolation = interpolation;
    Tracker tracker(options, reference);
    const Scene scene{tracker.grid(), reference.width(), reference.height()};
    // Because the pattern is fine, the interpolation's bias at 0.1 px is 0.0035 px (cubic) and 0.0015 px
    // (quintic).
    const double bias = interpolation == Interpolation::cubic ? 0.005 : 0.0025;
    for (auto [name, shift] : {std::pair{"shift_0.00", 0.0}, {"shift_0.10", 0.1}}) {
      const Errors e =
          interior_errors(scene, tracker.track(read("challenge5/" + std::string(name) + ".tif")).field,
                          [shift = shift](double, double) {
                            return Displacement{shift, shift};
                          });
      EXPECT_EQ(e.ok, e.points) << name;
      EXPECT_NEAR(e.u.mean(), 0, shift > 0 ? bias : 0.001) << name;
      EXPECT_NEAR(e.v.mean(), 0, shift > 0 ? bias : 0.001) << name;
      EXPECT_LE(e.u.sd(), 0.0035) << name;
    }
  }
}

TEST_F(RealImages, PatternsShowTheirTranslationTensionAndShear) {
  const struct {
    std::string name;
    Truth truth;
    double exx, eyy, exy;  // Green-Lagrange
  } motions[] = {{"Translation",
                  [](double, double) {
                    return Displacement{7.085, 7.085};
                  },
                  0, 0, 0},
                 {"Tension",
                  [](double x, double y) {
                    return Displacement{0.02 * x, -0.01 * (y - 250)};
                  },
                  0.0202, -0.00995, 0},
                 {"Shear",
                  [](double x, double y) {
                    return Displacement{0.01 * (y - 250), 0.01 * (x - 250)};
                  },
                  5e-5, 5e-5, 0.01}};
  for (const std::string pattern : {"Pattern_1", "Pattern_2"}) {
    const Image reference = read("patterns/" + pattern + ".bmp");
    for (const auto& motion : motions) {
      const Measured m =
          track_pair(track_options(), reference, read("patterns/" + pattern + "_" + motion.name + ".bmp"));
      const Errors e = interior_errors(m.scene, m.field, motion.truth);
      SCOPED_TRACE(pattern + "_" + motion.name);
      EXPECT_EQ(e.ok, e.points);
      EXPECT_LE(e.u.rms(), 0.003);
      EXPECT_LE(e.v.rms(), 0.003);
      EXPECT_NEAR(e.exx.mean(), motion.exx, 2e-4);
      EXPECT_NEAR(e.eyy.mean(), motion.eyy, 2e-4);
      EXPECT_NEAR(e.exy.mean(), motion.exy, 2e-4);
    }
  }
}

/// Share of the `ok` points that are more than `distance` px from the truth.
double share_of_wrong(const Measured& m, const Truth& truth, double distance) {
  std::int64_t ok = 0, wrong = 0;
  each_node(
      m.scene, [](int, int) { return true; },
      [&](int i, int j, std::int64_t n) {
        if (m.field.status[n] != Status::ok) return;
        ++ok;
        const auto [u, v] = truth(m.scene.grid.x(i), m.scene.grid.y(j));
        wrong += std::hypot(m.field.u[n] - u, m.field.v[n] - v) > distance;
      });
  return ok > 0 ? static_cast<double>(wrong) / static_cast<double>(ok) : 0;
}

std::int64_t count_ok(const Field& field) {
  return std::count(field.status.begin(), field.status.end(), Status::ok);
}

/// The centre is unknown; it is fitted to the measurement by least squares.
TEST_F(RealImages, ARotationBy170DegreesIsMeasured) {
  const Image reference = read("rotation/rotation_000.tif");
  const Measured m = track_pair(track_options(), reference, read("rotation/rotation_170.tif"));
  const double cosine = std::cos(170 * std::numbers::pi / 180), sine = std::sin(170 * std::numbers::pi / 180);
  Moments u, v;
  each_node(
      m.scene, [](int, int) { return true; },
      [&](int i, int j, std::int64_t n) {
        if (m.field.status[n] != Status::ok) return;
        const double x = m.scene.grid.x(i), y = m.scene.grid.y(j);
        u.add(m.field.u[n] - (cosine * x + sine * y - x));
        v.add(m.field.v[n] - (-sine * x + cosine * y - y));
      });
  EXPECT_GE(u.n, m.scene.grid.points() * 9 / 10);
  EXPECT_LE(u.sd(), 0.01);
  EXPECT_LE(v.sd(), 0.01);
}

/// A bar that is stretched from 0 to 30 or 40 % in one step; Poisson's ratio 0.3 (fitted by us, agrees to
/// 0.01 px).
TEST_F(RealImages, LargeStretchesInOneStep) {
  const Image reference = read("utn/utn_00.bmp");
  for (double strain : {0.3, 0.4}) {
    const Measured m = track_pair(track_options(33, 1, 10), reference,
                                  read("utn/utn_" + std::to_string(std::lround(100 * strain)) + ".bmp"));
    const Truth truth = [&](double x, double y) {
      return Displacement{strain * x, -0.3 * strain * (y - 250)};
    };
    EXPECT_LE(share_of_wrong(m, truth, 3), 0.005) << strain;
    EXPECT_LE(share_of_wrong(m, truth, 0.1), 0.05) << strain;
    EXPECT_GE(count_ok(m.field), m.scene.grid.points() * (strain < 0.35 ? 6 : 5) / 10) << strain;
  }
}

/// A quantile of the steps of u or v between ok neighbours along the grid, which measures wrong values if the
/// truth is unknown but smooth.
double step_quantile(const Measured& m, double quantile) {
  std::vector<double> steps;
  each_node(
      m.scene, [&](int i, int j) { return i + 1 < m.scene.grid.nx && m.scene.interior(i, j); },
      [&](int, int, std::int64_t n) {
        if (m.field.status[n] != Status::ok || m.field.status[n + 1] != Status::ok) return;
        steps.push_back(std::hypot(m.field.u[n + 1] - m.field.u[n], m.field.v[n + 1] - m.field.v[n]));
      });
  if (steps.empty()) return std::numeric_limits<double>::infinity();
  const auto at =
      steps.begin() + static_cast<std::ptrdiff_t>(quantile * static_cast<double>(steps.size() - 1));
  std::nth_element(steps.begin(), at, steps.end());
  return *at;
}

TEST_F(RealImages, OpenHoleCompositeIsSmoothAndFindsTheStretch) {
  const Measured m = track_pair(track_options(), read("oht/oht_cfrp_0.bmp"), read("oht/oht_cfrp_4.bmp"));
  EXPECT_GE(count_ok(m.field), m.scene.grid.points() * 95 / 100);
  EXPECT_LE(step_quantile(m, 0.95), 0.1);
  Moments eyy;  // far from the hole, along the load
  each_node(
      m.scene, [&](int i, int j) { return m.scene.interior(i, j) && m.scene.grid.y(j) < 250; },
      [&](int, int, std::int64_t n) {
        if (!std::isnan(m.field.strain.eyy[n])) eyy.add(m.field.strain.eyy[n]);
      });
  EXPECT_NEAR(eyy.mean(), 0.0025, 0.001);
}

TEST_F(RealImages, OpenHoleSequenceKeepsItsPointsToTheEnd) {
  const Image reference = read("oht_sequence/oht_cfrp_00.tiff");
  Tracker tracker(track_options(33, 1, 8), reference);
  for (int frame : {3, 6, 9, 11}) {
    const std::string number = (frame < 10 ? "0" : "") + std::to_string(frame);
    const Measured m{{tracker.grid(), reference.width(), reference.height()},
                     tracker.track(read("oht_sequence/oht_cfrp_" + number + ".tiff")).field};
    EXPECT_GE(count_ok(m.field), m.scene.grid.points() * 80 / 100) << frame;
    EXPECT_LE(step_quantile(m, 0.95), 0.15) << frame;
  }
}

TEST_F(RealImages, FractureTestOf16BitIsSmoothOnTheSpecimen) {
  TrackOptions options = track_options(33, 1, 8);
  const Image reference = read("frac16/img_0000 .png");
  ASSERT_EQ(reference.type(), ScalarType::u16);
  Roi roi;  // the specimen right of the notch
  roi.rect = Roi::Rect{300, 40, 460, 1100};
  Tracker tracker(options, reference, roi);
  for (const std::string number : {"0015", "0060"}) {
    const Measured m{{tracker.grid(), reference.width(), reference.height()},
                     tracker.track(read("frac16/img_" + number + " .png")).field};
    EXPECT_GE(count_ok(m.field), m.scene.grid.points() * 98 / 100) << number;
    EXPECT_LE(step_quantile(m, 0.99), 0.1) << number;
  }
}

}  // namespace
}  // namespace dic
