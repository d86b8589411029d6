#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/track_rules.hpp>
#include <random>
#include <vector>

#include "track/noise.hpp"

// What sigma is made of, in cases so simple that the result is known.
namespace dic::test {
namespace {

using track::NoiseCovariance;

/// A point of a pattern that varies as much in all directions, with a share of noise in its matrix.
RefinedPoint isotropic(double unit_sigma, double share, double noise) {
  RefinedPoint p;
  p.status = Status::ok;
  p.zncc = 0.99f;
  p.unit_sigma_u = p.unit_sigma_v = static_cast<float>(unit_sigma);
  const double inverse = unit_sigma * unit_sigma / 2;
  p.gradient_noise.uu = p.gradient_noise.vv = static_cast<float>(share * inverse / (noise * noise));
  return p;
}

const track::NoiseModel kModel = [] {
  track::NoiseModel model;
  model.most_share = 0.8;
  return model;
}();

TEST(Uncertainty, CountsTheNoiseOfTheGradients) {
  constexpr double unit = 0.01, noise = 3;
  for (const double share : {0.0, 0.2, 0.5}) {
    const NoiseCovariance c =
        track::noise_covariance(isotropic(unit, share, noise), {}, {noise, noise, 1}, kModel);
    const double plain = noise * noise * unit * unit / 2;
    EXPECT_NEAR(c.of_images.uu, 2 * plain / (1 - share), 1e-6 * plain);
    EXPECT_NEAR(c.of_gradients.vv, plain * share / std::pow(1 - share, 2), 1e-6 * plain);
    EXPECT_NEAR(c.of_images.uv, 0, 1e-9 * plain);
  }
  EXPECT_TRUE(std::isinf(
      track::noise_covariance(isotropic(unit, 0.9, noise), {}, {noise, noise, 1}, kModel).of_images.uu));
}

TEST(Uncertainty, IsDeformedWithTheSubset) {
  RefinedPoint p = isotropic(0.01, 0, 1);
  p.unit_sigma_v = 0.03f;
  ShapeParameters quarter_turn;
  quarter_turn.ux = quarter_turn.vy = -1;
  quarter_turn.uy = -1, quarter_turn.vx = 1;
  const NoiseCovariance turned = track::noise_covariance(p, quarter_turn, {1, 1, 1}, kModel);
  EXPECT_NEAR(std::sqrt(turned.of_images.uu), 0.03, 1e-8);
  EXPECT_NEAR(std::sqrt(turned.of_images.vv), 0.01, 1e-8);
  ShapeParameters stretched;
  stretched.ux = 1;  // twice as long, and half of the noise of the current image
  const NoiseCovariance twice = track::noise_covariance(p, stretched, {1, 1, 1}, kModel);
  EXPECT_NEAR(twice.of_images.uu, 4 * 0.75 * 0.01 * 0.01, 1e-9);
  EXPECT_NEAR(twice.of_images.vv, 0.75 * 0.03 * 0.03, 1e-9);
}

TEST(Uncertainty, KnowsThatOneImageHasLessNoise) {
  RefinedPoint p = isotropic(0.01, 0, 1);
  p.residual_sd = 2;  // all of it noise of the current image, at a pixel
  track::NoiseModel model = kModel;
  model.of_reference = {0, 0};
  for (auto& gain : model.gains.gain) gain = 1;
  const track::Sigmas sigmas = track::sigmas_of({}, p, {}, model, {});
  EXPECT_NEAR(sigmas.u, 2 * 0.01 / std::sqrt(2.0), 1e-6);
}

TEST(Uncertainty, CountsTheBiasOfTheInterpolation) {
  RefinedPoint p = isotropic(0.01, 0, 1);
  p.residual_sd = 0.1f;
  track::NoiseModel model = kModel;
  model.bias_u = 0.004;
  model.bias_v = 0.002;
  for (auto& gain : model.gains.gain) gain = 1;
  ShapeParameters shape;
  shape.u = 5.25, shape.v = -2.5;
  const double noise = 0.1 * 0.01 / std::sqrt(2.0);
  const track::Sigmas sigmas = track::sigmas_of({}, p, shape, model, {});
  EXPECT_NEAR(sigmas.u, std::hypot(0.004, noise), 2e-6);
  EXPECT_NEAR(sigmas.v, noise, 1e-5);
}

TEST(Uncertainty, OfSuccessiveStepsDoesNotAddUp) {
  const NoiseCovariance step{{2, 0, 2}, {0.1, 0, 0.1}};
  track::Covariance sum = step.of_images + step.of_gradients;
  for (int k = 0; k < 10; ++k) sum = track::after_step(sum, {}, step, 16);
  EXPECT_NEAR(sum.uu, 2.1 + 10 * (0.15 + 2 * 0.67 / 33), 1e-6);
}

TEST(Uncertainty, GradientNoiseIsThatOfAllPixels) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  double of_u[12], of_v[12];
  for (int k = 0; k < 12; ++k) {
    of_u[k] = uniform(random) / std::pow(10, k % 6 == 0 ? 0 : k % 6 < 3 ? 1 : 2);
    of_v[k] = uniform(random) / std::pow(10, k % 6 == 0 ? 0 : k % 6 < 3 ? 1 : 2);
  }
  const int left = -10, right = 16, top = -16, bottom = 5;
  double uu = 0, uv = 0;
  for (int j = top; j <= bottom; ++j)
    for (int i = left; i <= right; ++i)
      for (const int part : {0, 6}) {
        const double x = i, y = j;
        const auto at = [&](const double* c) {
          return c[part] + c[part + 1] * x + c[part + 2] * y + c[part + 3] * x * x / 2 + c[part + 4] * x * y +
                 c[part + 5] * y * y / 2;
        };
        uu += at(of_u) * at(of_u);
        uv += at(of_u) * at(of_v);
      }
  const double pixels = (right - left + 1) * (bottom - top + 1);
  const GradientNoise found = icgn::gradient_noise<12, double>(of_u, of_v, {double(left), double(right)},
                                                               {double(top), double(bottom)}, pixels);
  EXPECT_NEAR(found.uu, uu, 0.01 * uu);
  EXPECT_NEAR(found.uv, uv, 0.01 * uu);
}

/// A row of points, 10 px apart, with given shapes.
struct Row {
  using Index = int;
  std::vector<ShapeParameters> shapes;
  RefinedPoint point = isotropic(0.01, 0, 1);

  Status status(int) const { return Status::ok; }
  const ShapeParameters& shape(int i) const { return shapes[i]; }
  const RefinedPoint& refined(int) const { return point; }
  track::Slopes slopes(int i) const { return track::slopes_of(status(i), shapes[i]); }
  int x(int i) const { return 10 * i; }
  int y(int) const { return 0; }
  template <typename Visit>
  void for_each_neighbour(int i, const Visit& visit) const {
    if (i > 0) visit(i - 1);
    if (i + 1 < std::ssize(shapes)) visit(i + 1);
  }
};

track::NoiseModel model_of_row() {
  track::NoiseModel model = kModel;
  model.bends = true;
  model.mean_square = 90;
  return model;
}

TEST(Uncertainty, AParabolaBendsASubsetAnEdgeDoesNot) {
  Row row{std::vector<ShapeParameters>(3)};
  for (int i = 0; i < 3; ++i) row.shapes[i].ux = 0.01 * i;  // 0.001 per px
  const track::Cross<int> cross{0, 2, -1, -1};
  const auto bend = [&] { return track::bend_at(row, 1, cross, model_of_row().mean_square); };
  EXPECT_NEAR(bend().u, 1.5 * 90 / 2 * 0.001, 1e-7);
  EXPECT_EQ(bend().v, 0);
  row.shapes[2].ux = row.shapes[1].ux;
  EXPECT_EQ(bend().u, 0);
}

TEST(Uncertainty, CertainNeighboursConfirmAPoint) {
  Row row{std::vector<ShapeParameters>(3)};
  row.point.residual_sd = 2;
  const auto confirmed = [&](double sigma) {
    return track::is_certain_by_neighbours(row, 1, sigma, model_of_row());
  };
  row.shapes[1].u = 0.2;
  EXPECT_TRUE(confirmed(0.15));
  EXPECT_FALSE(confirmed(0.25));
  row.shapes[1].u = 0.3;
  EXPECT_FALSE(confirmed(0.15));
}

TEST(Uncertainty, APointBeyondTheOutermostPixelIsOutside) {
  track::NoiseModel model = kModel;
  model.width = model.height = 100;
  ShapeParameters shape;
  const auto outside = [&](double u) {
    shape.u = u;
    return track::is_outside(98, 50, {}, shape, 0.01f, 0.01f, model);
  };
  EXPECT_FALSE(outside(1));
  EXPECT_FALSE(outside(1.02));  // noise may have put it there
  EXPECT_TRUE(outside(1.05));
  EXPECT_TRUE(outside(-98.05));
}

Image noisy(double noise, int saturated_columns) {
  Image image({200, 200}, ScalarType::u8);
  std::mt19937 random(5);
  std::normal_distribution<double> normal(0, noise);
  for (int y = 0; y < 200; ++y)
    for (int x = 0; x < 200; ++x) {
      const double pattern = 120 + 40 * std::sin(0.4 * x) * std::cos(0.5 * y);
      const double grey = x < saturated_columns ? 255 : std::clamp(pattern + normal(random), 0.0, 255.0);
      image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::lround(grey));
    }
  return image;
}

TEST(Uncertainty, NoiseOfAnImageIsFoundBesideItsPattern) {
  std::vector<int> x, y;
  for (int j = 10; j < 200; j += 12)
    for (int i = 10; i < 200; i += 12) x.push_back(i), y.push_back(j);
  const auto places = track::noise_places({200, 200}, x, y);
  EXPECT_GT(places.size(), 60u);
  for (const double noise : {1.0, 3.0, 8.0})
    for (const int saturated : {0, 90})
      EXPECT_NEAR(track::image_noise(noisy(noise, saturated).view(), places), std::hypot(noise, 0.29),
                  0.06 * noise)
          << noise << ", " << saturated;
  EXPECT_EQ(track::image_noise(noisy(0, 200).view(), places), 0);
}

}  // namespace
}  // namespace dic::test
