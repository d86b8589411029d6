#include "stereo/sigma_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

// Matches of a plane whose errors are known: normal ones, of a standard deviation of which the prediction is
// a known multiple.
namespace dic::stereo {
namespace {

constexpr double kFocal = 2000, kDistance = 400, kDegrees = 20;
constexpr Size kImage = {1000, 800};

CameraRig rig_of() {
  CameraRig rig;
  rig.cameras.resize(2);
  for (RigCamera& camera : rig.cameras)
    camera.camera = {kImage, Lens{kFocal, kFocal, (kImage.width - 1) / 2.0, (kImage.height - 1) / 2.0}, {}};
  const double a = kDegrees * std::numbers::pi / 180;
  rig.cameras[1].rotation = {std::cos(a), 0, std::sin(a), 0, 1, 0, -std::sin(a), 0, std::cos(a)};
  rig.cameras[1].translation_mm = {-kDistance * std::sin(a), 0, kDistance * (1 - std::cos(a))};
  return rig;
}

/// A node of the plane: 1 - zncc, the true standard deviation of its match, px, and the predicted one.
struct Noise {
  double misfit, truth, predicted;
};

/// The matches of the plane z = kDistance. offset: error that the calibration adds to all of them, px.
template <typename NoiseAt>
Field matches(int step, const NoiseAt& noise_at, double offset = 0) {
  auto grid = std::make_shared<Grid>();
  grid->x0 = grid->y0 = 20, grid->step = step;
  grid->nx = 960 / step, grid->ny = 760 / step;
  grid->inside.assign(static_cast<std::size_t>(grid->nodes()), 1);
  Field field(grid);
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  const double a = kDegrees * std::numbers::pi / 180, cx = (kImage.width - 1) / 2.0,
               cy = (kImage.height - 1) / 2.0;
  for (std::size_t k = 0; k < field.status.size(); ++k) {
    const double x = grid->x(static_cast<int>(k % grid->nx)), y = grid->y(static_cast<int>(k / grid->nx));
    const double px = (x - cx) * kDistance / kFocal, py = (y - cy) * kDistance / kFocal;
    const double depth = kDistance - std::sin(a) * px;
    const Noise noise = noise_at(k);
    field.u[k] = kFocal * std::cos(a) * px / depth + cx - x + noise.truth * normal(random);
    field.v[k] = kFocal * py / depth + cy - y + noise.truth * normal(random) + offset * (1 + x * y / 1e6);
    field.sigma_u[k] = field.sigma_v[k] = static_cast<float>(noise.predicted);
    field.zncc[k] = static_cast<float>(1 - noise.misfit);
    field.status[k] = Status::ok;
  }
  return field;
}

std::vector<float> factors_of(const Field& field) {
  core::ThreadPool pool(1);
  return sigma_factors(field, rig_of(), pool);
}

/// A third of the nodes has misfits that are taken for noise.
Noise partly_misfit(std::size_t k) {
  return k % 3 == 0 ? Noise{0.01, 0.01, 0.025} : Noise{0.001, 0.01, 0.01};
}

TEST(SigmaFactors, UndoAPredictionThatTakesMisfitsForNoise) {
  const Field field = matches(10, partly_misfit);
  const std::vector<float> factors = factors_of(field);
  for (std::size_t k = 0; k < factors.size(); ++k) {
    const auto [misfit, truth, predicted] = partly_misfit(k);
    EXPECT_NEAR(factors[k] * predicted, truth, 0.08 * truth) << k;
  }
}

TEST(SigmaFactors, AreNotFooledByACalibrationThatIsOffOrByAFewWrongMatches) {
  Field field = matches(10, partly_misfit, 0.3);
  for (std::size_t k = 0; k < field.status.size(); k += 50) field.v[k] += 0.5;
  const std::vector<float> factors = factors_of(field);
  for (std::size_t k = 0; k < factors.size(); ++k) {
    const auto [misfit, truth, predicted] = partly_misfit(k);
    EXPECT_GT(factors[k] * predicted, 0.95 * truth) << k;
    EXPECT_LT(factors[k] * predicted, 1.25 * truth) << k;
  }
}

TEST(SigmaFactors, NeverEnlarge) {
  const std::vector<float> factors = factors_of(matches(10, [](std::size_t) {
    return Noise{0.001, 0.02, 0.01};
  }));
  EXPECT_EQ(std::ranges::count(factors, 1.0F), std::ssize(factors));
}

TEST(SigmaFactors, OfFewPointsAreOne) {
  const std::vector<float> factors = factors_of(matches(60, partly_misfit));
  EXPECT_EQ(std::ranges::count(factors, 1.0F), std::ssize(factors));
}

TEST(SigmaFactors, MultiplyBothDirections) {
  Field field = matches(60, partly_misfit);
  std::vector<float> factors(field.status.size(), 0.5F);
  factors[0] = 1;
  multiply_sigmas(field, factors);
  EXPECT_FLOAT_EQ(field.sigma_u[0], 0.025F);
  EXPECT_FLOAT_EQ(field.sigma_u[1], 0.005F);
  EXPECT_FLOAT_EQ(field.sigma_v[3], 0.0125F);
}

}  // namespace
}  // namespace dic::stereo
