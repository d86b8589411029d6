#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/track_rules.hpp>
#include <numbers>
#include <random>
#include <vector>

#include "analysis/noise.hpp"

// Tests the parts of sigma in simple cases with a known result.
namespace dic::test {
namespace {

using track::NoiseCovariance;

/// A point of an isotropic pattern, with a share of noise in its matrix.
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
  stretched.ux = 1;  // stretched to twice the length, which halves the noise variance of the current image
  const NoiseCovariance twice = track::noise_covariance(p, stretched, {1, 1, 1}, kModel);
  EXPECT_NEAR(twice.of_images.uu, 4 * 0.75 * 0.01 * 0.01, 1e-9);
  EXPECT_NEAR(twice.of_images.vv, 0.75 * 0.03 * 0.03, 1e-9);
}

TEST(Uncertainty, KnowsThatOneImageHasLessNoise) {
  RefinedPoint p = isotropic(0.01, 0, 1);
  p.residual_sd = 2;  // entirely noise of the current image, at a whole-pixel displacement
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
  float own_sigma(int) const { return 0.005f; }
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
  model.order = 1;
  model.mean_square = 90;
  return model;
}

const track::Cross<int> kBothSides{0, 2, -1, -1};

/// A field, its slope and its curvature at the points of a row.
template <typename Field>
Row row_of(const Field& field) {
  Row row{std::vector<ShapeParameters>(3)};
  for (int i = 0; i < 3; ++i) {
    const auto [u, ux, uxx] = field(row.x(i));
    row.shapes[i].u = u, row.shapes[i].ux = ux, row.shapes[i].uxx = uxx;
  }
  return row;
}

TEST(Uncertainty, AParabolaBendsASubsetAnEdgeDoesNot) {
  const auto bend = [](const Row& row) { return track::bend_at(row, 1, kBothSides, model_of_row()); };
  const auto parabola = [](double x) { return std::array{0.0005 * x * x, 0.001 * x, 0.0}; };
  EXPECT_NEAR(std::sqrt(bend(row_of(parabola)).u), 1.5 * 90 / 2 * 0.001, 1e-7);
  EXPECT_EQ(bend(row_of(parabola)).v, 0);
  // A change of the slopes with less effect than one sigma is noise.
  EXPECT_EQ(bend(row_of([](double x) { return std::array{0.0, 5e-5 * x, 0.0}; })).u, 0);
  // A kink between two points: only one slope changes.
  const auto kink = [](double x) {
    return std::array{0.02 * std::max(0.0, x - 14), x > 14 ? 0.02 : 0.0, 0.0};
  };
  EXPECT_NEAR(std::sqrt(bend(row_of(kink)).u), 1.5 * 90 / 2 * 0.02 / 20, 1e-7);
  // A body that turns about a point far away: the displacement between both points is not what the slopes
  // predict.
  const auto edge = [](double x) {
    return std::array{x > 14 ? 0.02 * (x - 200) : 0, x > 14 ? 0.02 : 0.0, 0.0};
  };
  EXPECT_EQ(bend(row_of(edge)).u, 0);
  Row lost = row_of(parabola);
  EXPECT_EQ(track::bend_at(lost, 1, {-1, -1, -1, -1}, model_of_row()).u, 0);
  // With one neighbour, it and the point itself tell.
  EXPECT_NEAR(std::sqrt(track::bend_at(lost, 1, {0, -1, -1, -1}, model_of_row()).u), 1.5 * 90 / 2 * 0.001,
              1e-7);
}

TEST(Uncertainty, BesideATearTheOtherSideTellsTheBend) {
  const auto bend = [](double slope, double jump) {
    const Row row = row_of([=](double x) {
      if (x < 5) return std::array{-jump, 0.0, 0.0};
      return std::array{x < 15 ? -5 * slope : 0.0, x < 15 ? slope : 0.0, 0.0};
    });
    return std::sqrt(track::bend_at(row, 1, kBothSides, model_of_row()).u);
  };
  EXPECT_EQ(bend(0, 3), 0);
  EXPECT_NEAR(bend(0.004, 3), 2 * 1.5 * 90 / 2 * 0.004 / 10, 1e-6);
  EXPECT_NEAR(bend(0.1, 3), 0.1, 1e-6);  // no more than this, which leaves the point certain
}

TEST(Uncertainty, WithOrderTwoTheCurvatureMustChange) {
  track::NoiseModel model = model_of_row();
  model.order = 2;
  const auto bend = [&](const Row& row) { return track::bend_at(row, 1, kBothSides, model).u; };
  EXPECT_EQ(bend(row_of([](double x) { return std::array{0.0005 * x * x, 0.001 * x, 0.001}; })), 0);
  const auto peak = [](double x) { return std::array{0.0, 0.0, x == 10 ? 0.001 : 0.0}; };
  EXPECT_NEAR(std::sqrt(bend(row_of(peak))), 0.264 * 90 * 0.001, 1e-7);
}

/// A row of five points, 10 px apart, that many small steps have displaced by `total`; the last one by next
/// to nothing. Returns the bend of the middle point.
template <typename Total>
track::Components bend_of_steps(const Total& total, const std::vector<int>& point_at = {0, 1, 2, 3, 4}) {
  const Row row{std::vector<ShapeParameters>(5)};
  const auto material = [&](int i) {
    track::MaterialPoint m;
    m.u = total(row.x(i));
    m.variance_u = m.variance_v = 1e-6F;
    return m;
  };
  return track::BendOfSteps(row, 2, material, model_of_row())({5, 1, point_at.data(), 2});
}

TEST(Uncertainty, ABendThatEachOfManyStepsHidesShowsInTheirSum) {
  const auto parabola = [](double x) { return 0.0005 * x * x; };
  EXPECT_NEAR(std::sqrt(bend_of_steps(parabola).u), 1.2 * 90 / 2 * 0.001, 1e-6);
  EXPECT_EQ(bend_of_steps(parabola).v, 0);
  EXPECT_NEAR(bend_of_steps([](double x) { return 3 + 0.02 * x; }).u, 0, 1e-10);
  // The curvature vanishes in the middle, but not beside it.
  const auto cubic = [](double x) { return 1e-4 * std::pow(x - 20, 3); };
  EXPECT_NEAR(bend_of_steps(cubic).u, 0.05 * std::pow(1.2 * 90 / 2 * 6e-3, 2), 1e-6);
  // A crack that has opened by 1 px right of the middle bends nothing.
  EXPECT_EQ(bend_of_steps([](double x) { return x > 25 ? 1 : 0; }).u, 0);
}

TEST(Uncertainty, APointThatLostANeighbourDoesNotHideItsBend) {
  const auto parabola = [](double x) { return 0.0005 * x * x; };
  // No node beyond the border: the bend beside the point stands for its own.
  EXPECT_NEAR(std::sqrt(bend_of_steps(parabola, {0, 1, 2, -1, -1}).u), 1.2 * 90 / 2 * 0.001, 1e-6);
  EXPECT_NEAR(std::sqrt(bend_of_steps(parabola, {-1, -1, 2, 3, 4}).u), 1.2 * 90 / 2 * 0.001, 1e-6);
  EXPECT_EQ(bend_of_steps(parabola, {-1, 1, 2, -1, -1}).u, 0);
}

TEST(Uncertainty, TheBendOfAllStepsCountsInSigma) {
  const RefinedPoint point = isotropic(0.01, 0, 1);
  track::MaterialPoint later;
  later.variance_u = later.variance_v = 1e-6F;
  const track::NoiseModel model = model_of_row();
  const float without = track::sigmas_of(later, point, {}, model, {}).u;
  EXPECT_FLOAT_EQ(track::sigmas_of(later, point, {}, model, {}, {0, 0.01F}).u, without);
  EXPECT_NEAR(track::sigmas_of(later, point, {}, model, {}, {0.01F, 0}).u, 0.1, 0.005);
  // A strong bend makes a point of many steps too uncertain, but not a point of the first.
  EXPECT_GT(track::sigmas_of(later, point, {}, model, {}, {1, 0}).u, track::kLargestSigma);
  EXPECT_LT(track::sigmas_of({}, point, {}, model, {}, {1, 0}).u, track::kLargestSigma);
}

/// The best fit of order 2 to a function, with equal weights: value and curvature in the middle.
template <typename Function>
std::array<double, 2> fitted(const Function& function, double centre, int radius) {
  double s0 = 0, s2 = 0, s4 = 0, f0 = 0, f2 = 0;
  for (int i = -radius; i <= radius; ++i) {
    const double x = double(i) * i, f = function(centre + i);
    s0 += 1, s2 += x, s4 += x * x, f0 += f, f2 += f * x;
  }
  const double c = (f2 - s2 * f0 / s0) / (s4 - s2 * s2 / s0);
  return {(f0 - c * s2) / s0, 2 * c};
}

TEST(Uncertainty, OrderTwoKnowsOfKinks) {
  // The bias by a kink of slope 0.032, half a px from a point, is at most twice the estimate.
  constexpr int radius = 16, apart = 15;
  const auto kink = [](double x) { return 0.032 * std::max(0.0, x - 0.5); };
  const auto [value, curvature] = fitted(kink, 0, radius);
  Row row{std::vector<ShapeParameters>(3)};
  for (int i = 0; i < 3; ++i) row.shapes[i].uxx = fitted(kink, apart * (i - 1), radius)[1];
  track::NoiseModel model = model_of_row();
  model.order = 2;
  model.mean_square = (33.0 * 33 - 1) / 12;
  const double bend = std::sqrt(track::bend_at(row, 1, kBothSides, model).u);
  EXPECT_GT(value - kink(0), 0.03);
  EXPECT_GT(bend, 0.5 * (value - kink(0)));
  EXPECT_LT(bend, 2 * (value - kink(0)));
}

TEST(Uncertainty, AnEdgeSharperThanPixelsIsMissedBetweenThem) {
  // The residual beyond the noise n of both images comes from edges of variance e, missed by 0.45 e (sin^2 +
  // sin^2).
  constexpr double n = 4, e = 100, unit = 0.001;
  track::NoiseModel model = kModel;
  model.radius = 16;
  model.gains = analysis::noise_gains(Interpolation::cubic, 0);
  model.reference = model.current = std::sqrt(n * n + e);
  model.edge_gradient = 8 / (33.0 * 33 * 2 * unit * unit);
  RefinedPoint p = isotropic(unit, 0, 1);
  for (const double at : {0.1, 0.2, 0.3, 0.5}) {
    ShapeParameters shape;
    shape.u = at;
    const double gain = track::mean_gain(model.gains, shape, model.radius);
    const double sine = std::pow(std::sin(std::numbers::pi * at), 2), left = 0.45 * e * sine;
    p.residual_sd = static_cast<float>(std::sqrt(n * n * (1 + gain) + left));
    const track::LocalNoise noise = track::noise_around(p, shape, model);
    EXPECT_NEAR(noise.images, n, 0.15) << at;
    const double few = 1 + 12.0 * 12 / (33 * 33);  // factor for few edges in a subset of 33 px
    EXPECT_NEAR(noise.edges_u, 0.16 * few * e * sine, 0.02 * e * sine) << at;
  }
}

TEST(Uncertainty, TheGainIsTheMeanOverAllPixelsOfASubset) {
  constexpr int radius = 16;
  const track::NoiseGains gains = analysis::noise_gains(Interpolation::cubic, 0);
  const auto over_all_pixels = [&](const ShapeParameters& shape) {
    double sum = 0;
    for (int dy = -radius; dy <= radius; ++dy)
      for (int dx = -radius; dx <= radius; ++dx)
        sum += gains.at(static_cast<float>(shape.u_at(dx, dy))) *
               gains.at(static_cast<float>(shape.v_at(dx, dy)));
    return sum / ((2 * radius + 1) * (2 * radius + 1));
  };
  for (const double degrees : {0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 45.0, 60.0, 90.0, 135.0, 180.0})
    for (const double stretch : {1.0, 1.004, 1.05, 1.5, 2.0}) {
      const double c = stretch * std::cos(degrees * std::numbers::pi / 180),
                   s = stretch * std::sin(degrees * std::numbers::pi / 180);
      for (const double at : {0.0, 0.2, 0.5}) {
        ShapeParameters shape;
        shape.u = 7 + at, shape.v = 2 * at;
        shape.ux = c - 1, shape.uy = -s, shape.vx = s, shape.vy = c - 1;
        const double expected = over_all_pixels(shape);
        EXPECT_NEAR(track::mean_gain(gains, shape, radius), expected, 0.06 * expected)
            << degrees << " degrees, stretched by " << stretch << ", at " << at;
      }
    }
}

TEST(Uncertainty, CertainNeighboursConfirmAPoint) {
  Row row{std::vector<ShapeParameters>(3)};
  row.point.residual_sd = 2;  // 0.014 px
  const auto confirmed = [&](double sigma) {
    return track::certain_neighbours_agree(row, 1, sigma, model_of_row());
  };
  row.shapes[1].u = 0.2;
  EXPECT_TRUE(confirmed(0.15));
  EXPECT_FALSE(confirmed(0.25));
  row.shapes[1].u = 0.3;
  EXPECT_FALSE(confirmed(0.15));
  row.shapes[1].u = 0;
  row.point.residual_sd = 17;  // 0.12 px: the neighbours are too uncertain
  EXPECT_FALSE(confirmed(0.18));
}

TEST(Uncertainty, APlaneThroughPointsOnOneSideTellsTheValueBesideThem) {
  track::PlaneThroughPoints plane, line;
  for (int y = -20; y <= 20; y += 5)
    for (int x = 5; x <= 20; x += 5) {
      plane.add(1 + 0.1 * y * y, x, y, 0.3 + 0.01 * x - 0.02 * y, -1 + 0.005 * x);
      if (y == 0) line.add(1, x, y, 0.3 + 0.01 * x, 2);
    }
  EXPECT_EQ(plane.count(), 36);
  EXPECT_NEAR(plane.u(), 0.3, 0.005);
  EXPECT_NEAR(plane.v(), -1, 0.0025);
  EXPECT_NEAR(line.u(), 0.3, 0.005);
  EXPECT_NEAR(line.v(), 2, 1e-9);
}

/// Points on a square grid of 5 x 5 nodes, 10 px apart, with a stretch and a rotation.
struct Square : Row {
  std::vector<int> point_at = std::vector<int>(25);
  std::vector<Status> statuses = std::vector<Status>(25, Status::ok);
  static constexpr int kMiddle = 12;

  Square() {
    point.residual_sd = 2;  // 0.014 px
    shapes.resize(25);
    for (int i = 0; i < 25; ++i) {
      ShapeParameters& s = shapes[i];
      point_at[i] = i;
      s.ux = 0.1, s.uy = -0.3, s.vx = 0.3, s.vy = 0.1;
      s.u = s.u + s.ux * x(i) + s.uy * y(i), s.v = s.v + s.vx * x(i) + s.vy * y(i);
    }
  }
  Status status(int i) const { return statuses[i]; }
  int x(int i) const { return i % 5 * 10; }
  int y(int i) const { return i / 5 * 10; }
  bool confirm(const track::Sigmas& sigmas) const {
    return track::is_certain_by_neighbours(*this, kMiddle, {5, 5, point_at.data(), kMiddle}, sigmas,
                                           model_of_row());
  }
};

TEST(Uncertainty, ThePlaneOfItsNeighboursConfirmsAPointThatIsUncertainByAllCauses) {
  const track::Sigmas certain{.u = 0.12F, .v = 0.1F, .by_noise = 0.1F},
      uncertain{.u = 0.2F, .v = 0.1F, .by_noise = 0.05F};
  EXPECT_TRUE(track::is_certain(certain));
  EXPECT_FALSE(track::is_certain(uncertain));
  Square square;
  EXPECT_TRUE(square.confirm(uncertain));
  square.shapes[Square::kMiddle].v += 0.19;
  EXPECT_TRUE(square.confirm(uncertain));
  square.shapes[Square::kMiddle].v += 0.02;
  EXPECT_FALSE(square.confirm(uncertain));
}

TEST(Uncertainty, FewerThanFiveNeighboursConfirmNoPoint) {
  const track::Sigmas uncertain{.u = 0.2F, .v = 0.1F, .by_noise = 0.05F};
  Square square;
  for (int i = 0; i < 25; ++i)
    if (i != Square::kMiddle && i > 4) square.statuses[i] = Status::low_correlation;
  EXPECT_TRUE(square.confirm(uncertain));
  square.statuses[0] = Status::low_correlation;
  EXPECT_FALSE(square.confirm(uncertain));
}

TEST(Uncertainty, WhatIsNotKnownToHalfAPixelIsNotOk) {
  track::NoiseModel model = kModel;
  model.width = model.height = 100;
  track::Sigmas sigmas;
  const auto status = [&] { return track::status_of(50, 50, {}, {}, sigmas, model); };
  sigmas.u = 0.24F;
  EXPECT_EQ(status(), Status::ok);
  sigmas.u = 0.26F;
  EXPECT_EQ(status(), Status::low_correlation);
  sigmas.u = NAN;
  EXPECT_EQ(status(), Status::low_correlation);
  sigmas = {.u = 0.1F, .v = 0.3F};
  EXPECT_EQ(status(), Status::low_correlation);
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
  EXPECT_FALSE(outside(1.02));  // within the noise of the border
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
  const auto places = analysis::spread_noise_patches({200, 200}, x, y);
  EXPECT_GT(places.size(), 60u);
  core::ThreadPool pool(2);
  for (const double noise : {1.0, 3.0, 8.0})
    for (const int saturated : {0, 90})
      EXPECT_NEAR(analysis::image_noise(noisy(noise, saturated).view(), places, pool),
                  std::hypot(noise, 0.29), 0.06 * noise)
          << noise << ", " << saturated;
  EXPECT_EQ(analysis::image_noise(noisy(0, 200).view(), places, pool), 0);
}

}  // namespace
}  // namespace dic::test
