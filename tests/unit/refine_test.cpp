#include <gtest/gtest.h>

#include <cmath>
#include <dic/error.hpp>
#include <dic/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/shape.hpp>
#include <vector>

#include "support/refine_support.hpp"
#include "support/speckle.hpp"

// Tests the refinement of known displacements: bias, noise, orders, lighting, types, threads.
namespace dic {
namespace {

using namespace test;

struct BiasCase {
  Interpolation interpolation;
  double blob_sigma;
  bool as_u8;
  double largest_bias;  ///< px; rounding to u8 leaves about 1e-4 as the mean of these few points
};
void PrintTo(const BiasCase& c, std::ostream* out) {
  *out << to_string(c.interpolation) << (c.blob_sigma > 1.5 ? "_blobs17" : "_blobs10")
       << (c.as_u8 ? "_u8" : "_f32");
}
class Bias : public testing::TestWithParam<BiasCase> {};

TEST_P(Bias, OfSubPixelTranslationsIsThatOfAPrefilteredSpline) {
  const BiasCase& c = GetParam();
  constexpr int kSize = 240;
  const Points points = grid_points(kSize, kSize, 22, 14);
  for (double shift : {0.1, 0.25, 0.5, 0.8}) {
    const auto pair = speckle_pair(kSize, kSize, c.blob_sigma, 11, translation(shift, -shift));
    const auto typed = [&](const Image& image) {
      return c.as_u8 ? converted<std::uint8_t>(image, ScalarType::u8) : image;
    };
    const Refiner refiner =
        refiner_of(options_of(33, 1, c.interpolation), typed(pair.reference), typed(pair.current), points);
    double sum_u = 0, sum_v = 0;
    for (std::size_t i = 0; i < points.x.size(); ++i) {
      const RefinedPoint p = refiner.refine(i, {});
      ASSERT_EQ(p.status, Status::ok);
      sum_u += p.shape.u - shift;
      sum_v += p.shape.v + shift;
    }
    EXPECT_NEAR(sum_u / points.x.size(), 0, c.largest_bias) << "shift " << shift;
    EXPECT_NEAR(sum_v / points.x.size(), 0, c.largest_bias) << "shift " << shift;
  }
}
INSTANTIATE_TEST_SUITE_P(Images, Bias,
                         testing::Values(BiasCase{Interpolation::cubic, 1.7, false, 6e-4},
                                         BiasCase{Interpolation::cubic, 1.7, true, 9e-4},
                                         BiasCase{Interpolation::quintic, 1.7, false, 1.5e-4},
                                         BiasCase{Interpolation::quintic, 1.7, true, 4e-4},
                                         BiasCase{Interpolation::cubic, 1.0, false, 45e-4},
                                         BiasCase{Interpolation::quintic, 1.0, false, 10e-4}),
                         testing::PrintToStringParamName());

TEST(Refiner, EveryOrderRecoversTheFieldsItCanDescribe) {
  constexpr int kSize = 150;
  ShapeParameters fields[3] = {start_at(2.3, -1.6), affine(2.3, -1.6, 1, 0.02),
                               curved(affine(2.3, -1.6, 0.5, 0.01), 3e-4)};
  const Points points = grid_points(kSize, kSize, 30, 22);
  for (int order : {0, 1, 2}) {
    const auto pair = speckle_pair(kSize, kSize, 1.7, 3, shape_field(fields[order], kSize / 2, kSize / 2));
    const Refiner refiner =
        refiner_of(options_of(31, order, Interpolation::quintic), pair.reference, pair.current, points);
    for (std::size_t i = 0; i < points.x.size(); ++i) {
      const ShapeParameters truth =
          moved_centre(fields[order], points.x[i] - kSize / 2, points.y[i] - kSize / 2);
      const RefinedPoint p = refiner.refine(i, start_at(std::round(truth.u), std::round(truth.v)));
      ASSERT_EQ(p.status, Status::ok) << "order " << order;
      EXPECT_NEAR(p.shape.u, truth.u, 1e-3) << "order " << order;
      EXPECT_NEAR(p.shape.v, truth.v, 1e-3);
      for (auto parameter :
           {&ShapeParameters::ux, &ShapeParameters::uy, &ShapeParameters::vx, &ShapeParameters::vy})
        EXPECT_NEAR(p.shape.*parameter, truth.*parameter, 1e-4) << "order " << order;
      for (auto parameter : {&ShapeParameters::uxx, &ShapeParameters::uxy, &ShapeParameters::uyy,
                             &ShapeParameters::vxx, &ShapeParameters::vxy, &ShapeParameters::vyy})
        EXPECT_NEAR(p.shape.*parameter, truth.*parameter, 3e-5) << "order " << order;
      EXPECT_GT(p.zncc, 0.9999f);
    }
  }
}

TEST(Refiner, LowerOrdersIgnoreTheHigherTermsOfTheStart) {
  const auto pair = speckle_pair(80, 80, 1.7, 3, translation(0.3, 0.2));
  const ShapeParameters start = curved(affine(0, 0, 3, 0.1), 1e-3);
  const RefinedPoint p = refine_one(options_of(31, 0), pair.reference, pair.current, 40, 40, start);
  ASSERT_EQ(p.status, Status::ok);
  EXPECT_NEAR(p.shape.u, 0.3, 1e-3);
  EXPECT_EQ(p.shape.ux, 0);
  EXPECT_EQ(p.shape.vxy, 0);
}

TEST(Refiner, FollowsRotationAndStretchOfManyKnotsPerVector) {
  constexpr int kSize = 160;
  for (auto [angle, stretch] : {std::pair{10.0, 0.0}, {0.0, 0.2}, {-10.0, 0.2}, {45.0, -0.2}}) {
    const ShapeParameters truth = affine(1.4, -0.7, angle, stretch);
    const auto pair = speckle_pair(kSize, kSize, 2.0, 4, shape_field(truth, kSize / 2, kSize / 2));
    ShapeParameters start = truth;
    start.u += 0.4;
    start.v -= 0.4;
    start.ux += 0.02;
    const RefinedPoint p =
        refine_one(options_of(33, 1), pair.reference, pair.current, kSize / 2, kSize / 2, start);
    ASSERT_EQ(p.status, Status::ok) << angle << " deg, " << stretch;
    EXPECT_NEAR(p.shape.u, truth.u, 2e-3) << angle << " deg, " << stretch;
    EXPECT_NEAR(p.shape.v, truth.v, 2e-3);
    EXPECT_NEAR(p.shape.ux, truth.ux, 2e-4);
    EXPECT_NEAR(p.shape.vx, truth.vx, 2e-4);
  }
}

TEST(Refiner, TakesEverySubsetSize) {
  constexpr int kSize = 300;
  const auto pair =
      speckle_pair(kSize, kSize, 1.7, 5, shape_field(affine(0.4, -0.3, 0.2, 0.003), kSize / 2, kSize / 2));
  for (int subset : {7, 9, 11, 15, 17, 21, 31, 33, 35, 51, 65, 101, 255})
    for (int order : {0, 1, 2}) {
      if (order == 2 && subset < 11)
        continue;  // 12 parameters from 49 pixels need a start closer than 0.5 px
      if (order == 0 && subset > 65) continue;  // a constant does not describe the field
      const RefinedPoint p =
          refine_one(options_of(subset, order), pair.reference, pair.current, kSize / 2, kSize / 2);
      ASSERT_EQ(p.status, Status::ok) << subset << ", order " << order;
      EXPECT_NEAR(p.shape.u, 0.4, order == 0 ? 0.03 : 0.01) << subset << ", order " << order;
      EXPECT_NEAR(p.shape.v, -0.3, order == 0 ? 0.03 : 0.01) << subset << ", order " << order;
    }
}

TEST(Refiner, ZnccIsThatOfANaiveEvaluation) {
  const auto pair = speckle_pair(90, 90, 1.7, 6, translation(0.4, 0.3));
  const Image current = noisy(pair.current, 8, 1);
  const RefinedPoint p = refine_one(options_of(31, 1), pair.reference, current, 45, 45);
  ASSERT_EQ(p.status, Status::ok);
  const NaiveSpline spline(current, Interpolation::cubic);
  EXPECT_NEAR(p.zncc, naive_zncc(pair.reference, spline, 45, 45, 15, p.shape), 1e-5);
  EXPECT_LT(p.zncc, 0.99f);
}

TEST(Refiner, ResidualIsTheNoiseOfBothImages) {
  constexpr int kSize = 200;
  const auto pair = speckle_pair(kSize, kSize, 1.7, 7, translation(0, 0));
  const Points points = grid_points(kSize, kSize, 20, 20);
  const Refiner refiner =
      refiner_of(options_of(31, 1), noisy(pair.reference, 3, 1), noisy(pair.current, 4, 2), points);
  double square = 0;
  for (std::size_t i = 0; i < points.x.size(); ++i) square += std::pow(refiner.refine(i, {}).residual_sd, 2);
  EXPECT_NEAR(std::sqrt(square / points.x.size()), 5, 0.15);
}

TEST(Refiner, GainAndOffsetOfTheLightingChangeNothing) {
  constexpr int kSize = 120;
  const auto pair = speckle_pair(kSize, kSize, 1.7, 8, shape_field(affine(0.4, -0.3, 1, 0.01), 60, 60));
  const RefinedPoint expected = refine_one(options_of(33, 1), pair.reference, pair.current, 60, 60);
  ASSERT_EQ(expected.status, Status::ok);
  for (auto [gain, offset] : {std::pair{0.4, 0.0}, {1.0, 80.0}, {2.5, -300.0}, {0.01, 5.0}}) {
    const Image current =
        image_of(kSize, kSize, [&](int x, int y) { return gain * pair.current.row<float>(y)[x] + offset; });
    const RefinedPoint p = refine_one(options_of(33, 1), pair.reference, current, 60, 60);
    ASSERT_EQ(p.status, Status::ok) << gain << ", " << offset;
    EXPECT_NEAR(p.shape.u, expected.shape.u, 2e-5) << gain << ", " << offset;
    EXPECT_NEAR(p.shape.v, expected.shape.v, 2e-5) << gain << ", " << offset;
    EXPECT_NEAR(p.zncc, expected.zncc, 1e-5);
  }
}

TEST(Refiner, GreyLevelsOfAllTypesAgree) {
  constexpr int kSize = 120;
  const auto pair = speckle_pair(kSize, kSize, 1.7, 9, shape_field(affine(0.4, -0.3, 1, 0.01), 60, 60));
  const Image u8_reference = converted<std::uint8_t>(pair.reference, ScalarType::u8);
  const Image u8_current = converted<std::uint8_t>(pair.current, ScalarType::u8);
  const auto rounded = [](const Image& u8, double factor) {
    return image_of(u8.width(), u8.height(),
                    [&](int x, int y) { return factor * u8.row<std::uint8_t>(y)[x]; });
  };
  const RefinedPoint expected = refine_one(options_of(33, 1), u8_reference, u8_current, 60, 60);
  ASSERT_EQ(expected.status, Status::ok);
  const Image f32_reference = rounded(u8_reference, 1), f32_current = rounded(u8_current, 1);
  const RefinedPoint as_float = refine_one(options_of(33, 1), f32_reference, f32_current, 60, 60);
  EXPECT_EQ(as_float.shape.u, expected.shape.u);
  const RefinedPoint as_u16 =
      refine_one(options_of(33, 1), converted<std::uint16_t>(f32_reference, ScalarType::u16, 257),
                 converted<std::uint16_t>(f32_current, ScalarType::u16, 257), 60, 60);
  ASSERT_EQ(as_u16.status, Status::ok);
  EXPECT_NEAR(as_u16.shape.u, expected.shape.u, 1e-5);
  EXPECT_NEAR(as_u16.shape.v, expected.shape.v, 1e-5);
  EXPECT_NEAR(as_u16.zncc, expected.zncc, 1e-6);
  EXPECT_NEAR(as_u16.unit_sigma_u * 257, expected.unit_sigma_u, 1e-4 * expected.unit_sigma_u);
  EXPECT_NEAR(as_u16.residual_sd, 257 * expected.residual_sd, 0.01 * as_u16.residual_sd);
}

struct SigmaCase {
  int subset, order;
};
class Sigma : public testing::TestWithParam<SigmaCase> {};

TEST_P(Sigma, PredictsTheObservedScatter) {
  constexpr int kSize = 200, kDraws = 12;
  constexpr double kNoise = 2;
  const auto [subset, order] = GetParam();
  const auto pair = speckle_pair(kSize, kSize, 1.7, 19, translation(0.3, 0.2));
  const Points points = grid_points(kSize, kSize, subset / 2 + 3, 17);
  double square_u = 0, square_v = 0, n = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Refiner refiner = refiner_of(options_of(subset, order), noisy(pair.reference, kNoise, 100 + draw),
                                       noisy(pair.current, kNoise, 200 + draw), points);
    for (std::size_t i = 0; i < points.x.size(); ++i) {
      const RefinedPoint p = refiner.refine(i, {});
      ASSERT_EQ(p.status, Status::ok);
      square_u += std::pow((p.shape.u - 0.3) / (kNoise * p.unit_sigma_u), 2);
      square_v += std::pow((p.shape.v - 0.2) / (kNoise * p.unit_sigma_v), 2);
      ++n;
    }
  }
  EXPECT_NEAR(std::sqrt(square_u / n), 1, 0.1);
  EXPECT_NEAR(std::sqrt(square_v / n), 1, 0.1);
}
INSTANTIATE_TEST_SUITE_P(SubsetsAndOrders, Sigma,
                         testing::Values(SigmaCase{15, 0}, SigmaCase{15, 1}, SigmaCase{15, 2},
                                         SigmaCase{21, 1}, SigmaCase{21, 2}, SigmaCase{33, 0},
                                         SigmaCase{33, 1}, SigmaCase{33, 2}, SigmaCase{51, 2}),
                         [](const auto& test) {
                           return "subset" + std::to_string(test.param.subset) + "order" +
                                  std::to_string(test.param.order);
                         });

/// Faint speckle in noise on a bright ground: noise dominates the Gauss-Newton matrix, and every target
/// rounds differently.
TEST(Refiner, PointsThatConvergeSlowlyEndAlikeOnEverySimdTarget) {
  constexpr int kSize = 300;
  const auto pair = speckle_pair(kSize, kSize, 2.2, 22, translation(0.4, -0.3));
  const auto faint = [](const Image& image, unsigned seed) {
    return noisy(image_of(kSize, kSize, [&](int x, int y) { return 20000 + image.row<float>(y)[x]; }), 18,
                 seed);
  };
  const Image reference = faint(pair.reference, 1), current = faint(pair.current, 2);
  const Points points = grid_points(kSize, kSize, 20, 10);
  std::vector<std::vector<RefinedPoint>> of_targets;
  on_every_simd_target([&] {
    const Refiner refiner = refiner_of(options_of(31, 1), reference, current, points);
    std::vector<RefinedPoint>& found = of_targets.emplace_back();
    for (std::size_t i = 0; i < points.x.size(); ++i) found.push_back(refiner.refine(i, {}));
  });
  std::size_t slow = 0, lost = 0;
  for (const auto& found : of_targets)
    for (std::size_t i = 0; i < found.size(); ++i) {
      const RefinedPoint& expected = of_targets[0][i];
      slow += found[i].iterations > icgn::float_iterations;
      lost += found[i].status == Status::not_converged;
      EXPECT_EQ(found[i].status, expected.status) << points.x[i] << ", " << points.y[i];
      EXPECT_EQ(found[i].iterations, expected.iterations) << points.x[i] << ", " << points.y[i];
      if (expected.status == Status::ok) {
        EXPECT_NEAR(found[i].shape.u, expected.shape.u, 1e-4);
      }
    }
  EXPECT_GT(slow, of_targets.size() * points.x.size() / 2);
  EXPECT_GT(lost, slow / 10);
}

TEST(Refiner, ResultsDoNotDependOnTheNumberOfThreads) {
  const auto pair = speckle_pair(150, 150, 1.7, 20, shape_field(affine(0.4, -0.3, 1, 0.01), 75, 75));
  const Points points = grid_points(150, 150, 10, 13);
  const Refiner one = refiner_of(options_of(21, 2), pair.reference, pair.current, points, {}, 1);
  for (int threads : {2, 3, 7}) {
    const Refiner many = refiner_of(options_of(21, 2), pair.reference, pair.current, points, {}, threads);
    for (std::size_t i = 0; i < points.x.size(); ++i) {
      const RefinedPoint a = one.refine(i, {}), b = many.refine(i, {});
      ASSERT_EQ(a.status, b.status);
      ASSERT_EQ(a.shape.u, b.shape.u);
      ASSERT_EQ(a.shape.vyy, b.shape.vyy);
      ASSERT_EQ(a.zncc, b.zncc);
      ASSERT_EQ(a.unit_sigma_u, b.unit_sigma_u);
    }
  }
}

TEST(Refiner, TakesANewReferenceOfAnotherSize) {
  const auto first = speckle_pair(100, 90, 1.7, 21, translation(0.3, 0));
  const auto second = speckle_pair(140, 130, 1.7, 22, translation(-0.4, 0.2));
  Refiner refiner = refiner_of(options_of(21, 1), first.reference, first.current, {{50}, {40}});
  EXPECT_NEAR(refiner.refine(0, {}).shape.u, 0.3, 0.005);
  const std::vector<int> x{40, 90}, y{50, 60};
  refiner.set_reference(second.reference, x, y);
  refiner.set_current(second.current);
  EXPECT_NEAR(refiner.refine(0, {}).shape.u, -0.4, 0.005);
  EXPECT_NEAR(refiner.refine(1, {}).shape.v, 0.2, 0.005);
}

TEST(Refiner, RefusesWhatContradictsItself) {
  const Image image = random_image(60, 50, 1), other = random_image(50, 60, 1);
  const Image roi({50, 60}, ScalarType::u8);
  const std::vector<int> x{30}, y{25}, none;
  Refiner refiner(options_of(21, 1), "cpu", 1);
  EXPECT_THROW(refiner.set_reference(Image(), x, y), UsageError);
  EXPECT_THROW(refiner.set_reference(image, x, none), UsageError);
  EXPECT_THROW(refiner.set_reference(image, x, y, roi), UsageError);
  refiner.set_reference(image, x, y);
  EXPECT_THROW(refiner.set_current(other), UsageError);
}

TEST(RefineOptions, EachProblemIsOneSentence) {
  EXPECT_TRUE(RefineOptions{}.validate().empty());
  const auto problems_with = [](auto change) {
    RefineOptions options;
    change(options);
    EXPECT_THROW(Refiner{options}, UsageError);
    return options.validate();
  };
  for (int subset : {-33, 0, 5, 32, 256, 257})
    EXPECT_EQ(problems_with([&](auto& o) { o.subset = subset; }).size(), 1U) << subset;
  for (int order : {-1, 3}) EXPECT_EQ(problems_with([&](auto& o) { o.order = order; }).size(), 1U) << order;
  for (double tolerance : {0.0, -1e-4, std::nan("")})
    EXPECT_EQ(problems_with([&](auto& o) { o.tolerance = tolerance; }).size(), 1U) << tolerance;
  for (double zncc : {-1.5, 1.5, std::nan("")})
    EXPECT_EQ(problems_with([&](auto& o) { o.min_zncc = zncc; }).size(), 1U) << zncc;
  EXPECT_EQ(problems_with([](auto& o) { o.max_iterations = 0; }).size(), 1U);
  EXPECT_EQ(problems_with([](auto& o) { o.subset = 8, o.order = 4; }).size(), 2U);
}

}  // namespace
}  // namespace dic
