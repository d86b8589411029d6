#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/shape.hpp>
#include <limits>
#include <numbers>

#include "support/refine_support.hpp"
#include "support/speckle.hpp"

// Tests that points which cannot be measured get a status.
namespace dic {
namespace {

using namespace test;

TEST(Refiner, NoContrastIsFlat) {
  const auto pair = speckle_pair(100, 100, 1.7, 13, translation(0, 0));
  for (double level : {0.0, 17.0, 255.0, 1e6}) {
    const Image constant = image_of(100, 100, [&](int, int) { return level; });
    EXPECT_EQ(refine_one(options_of(33, 1), constant, pair.current, 50, 50).status, Status::flat) << level;
  }
}

TEST(Refiner, ContrastInOneDirectionIsFlat) {
  for (int order : {0, 1, 2})
    for (double direction : {0.0, 0.3, std::numbers::pi / 2}) {
      const Image stripes = image_of(100, 100, [&](int x, int y) {
        return 128 + 100 * std::sin(0.7 * (x * std::cos(direction) + y * std::sin(direction)));
      });
      EXPECT_EQ(refine_one(options_of(33, order), stripes, stripes, 50, 50).status, Status::flat)
          << "order " << order << ", direction " << direction;
    }
}

TEST(Refiner, AnEdgeBesideNextToNothingIsFlat) {
  const Speckle speckle(100, 100, 1.7, 21);
  for (const auto& [texture, status] : {std::pair{500.0, Status::ok}, {10.0, Status::flat}}) {
    const Image edge = image_of(100, 100, [&, texture = texture](int x, int y) {
      return 5000 + 55000 / (1 + std::exp(58 - x)) + texture * speckle(x, y);
    });
    EXPECT_EQ(refine_one(options_of(33, 1), edge, edge, 50, 50).status, status) << texture;
  }
}

TEST(Refiner, AFlatCurrentImageIsLowCorrelation) {
  const auto pair = speckle_pair(100, 100, 1.7, 13, translation(0, 0));
  for (double level : {0.0, 255.0}) {
    const Image constant = image_of(100, 100, [&](int, int) { return level; });
    EXPECT_EQ(refine_one(options_of(33, 1), pair.reference, constant, 50, 50).status,
              Status::low_correlation);
  }
}

TEST(Refiner, LeavingTheCurrentImageIsOutOfImage) {
  const auto pair = speckle_pair(100, 100, 1.7, 14, translation(-8, 0));
  const Points points{{50, 20, 16}, {50, 50, 50}};
  const Refiner refiner = refiner_of(options_of(33, 1), pair.reference, pair.current, points);
  EXPECT_EQ(refiner.refine(0, start_at(-8, 0)).status, Status::ok);
  EXPECT_EQ(refiner.refine(1, start_at(-8, 0)).status, Status::out_of_image);
  EXPECT_EQ(refiner.refine(2, start_at(-7, 0)).status, Status::out_of_image);
  EXPECT_EQ(refiner.refine(0, start_at(1e9, -1e9)).status, Status::out_of_image);
}

TEST(Refiner, WrongStartsAndForeignImagesAreNeverOkWithWrongNumbers) {
  constexpr int kSize = 200;
  const auto pair = speckle_pair(kSize, kSize, 1.7, 15, translation(0.3, -0.2));
  const auto foreign = speckle_pair(kSize, kSize, 1.7, 99, translation(0, 0));
  const Points points = grid_points(kSize, kSize, 60, 9);
  for (int order : {0, 1, 2}) {
    const RefineOptions options = options_of(33, order);
    const Refiner refiner = refiner_of(options, pair.reference, pair.current, points);
    const Refiner lost = refiner_of(options, pair.reference, foreign.current, points);
    for (std::size_t i = 0; i < points.x.size(); ++i) {
      for (const ShapeParameters& start : {start_at(12, 7), start_at(-25, 30), affine(0, 0, 90, 0)}) {
        const RefinedPoint p = refiner.refine(i, start);
        if (p.status == Status::ok) {
          EXPECT_NEAR(p.shape.u, 0.3, 0.02);
        }
      }
      EXPECT_NE(lost.refine(i, {}).status, Status::ok);
    }
  }
}

TEST(Refiner, NanInTheStartOrTheImageIsNeverOk) {
  const auto pair = speckle_pair(100, 100, 1.7, 16, translation(0, 0));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refine_one(options_of(33, 1), pair.reference, pair.current, 50, 50, start_at(nan, 0)).status,
            Status::diverged);
  Image holed = pair.reference;
  holed.row<float>(50)[50] = nan;
  EXPECT_NE(refine_one(options_of(33, 1), holed, pair.current, 50, 50).status, Status::ok);
  EXPECT_NE(refine_one(options_of(33, 1), pair.reference, holed, 50, 50).status, Status::ok);
}

TEST(Refiner, LittleIsLeftToGoAfterTheLastStep) {
  const auto pair = speckle_pair(120, 120, 1.7, 16, [](double x, double y) {
    return std::pair{0.3 + 0.002 * (x - 60), -0.2 + 0.003 * (y - 60) - 0.001 * (x - 60)};
  });
  const Points points = grid_points(120, 120, 30, 9);
  for (const double noise : {0.0, 2.0, 10.0}) {
    RefineOptions options = options_of(33, 1);
    const Image reference = noisy(pair.reference, noise, 1), current = noisy(pair.current, noise, 2);
    const Refiner usual = refiner_of(options, reference, current, points);
    options.tolerance = 1e-7;
    options.max_iterations = 100;
    const Refiner exact = refiner_of(options, reference, current, points);
    int saved = 0;
    for (std::size_t i = 0; i < points.x.size(); ++i) {
      const RefinedPoint found = usual.refine(i, start_at(0.2, -0.1)),
                         want = exact.refine(i, start_at(0.2, -0.1));
      ASSERT_EQ(found.status, Status::ok);
      EXPECT_LE(std::hypot(found.shape.u - want.shape.u, found.shape.v - want.shape.v), 1e-4) << noise;
      EXPECT_NEAR(found.zncc, want.zncc, 1e-3 * (1 - want.zncc) + 1e-6) << noise;
      EXPECT_NEAR(found.residual_sd, want.residual_sd, 1e-3 * want.residual_sd + 1e-2) << noise;
      saved += want.iterations - found.iterations;
    }
    EXPECT_GE(saved, std::ssize(points.x)) << noise;
  }
}

TEST(Refiner, RunsOutOfIterationsHonestly) {
  const auto pair = speckle_pair(100, 100, 1.7, 17, translation(0.5, 0.5));
  RefineOptions options = options_of(33, 1);
  options.max_iterations = 1;
  const RefinedPoint p = refine_one(options, pair.reference, pair.current, 50, 50);
  EXPECT_EQ(p.status, Status::not_converged);
  EXPECT_EQ(p.iterations, 1);
  options.tolerance = 2e-3;  // ten times the tolerance suffices in the last iteration
  EXPECT_EQ(refine_one(options, pair.reference, pair.current, 50, 50, start_at(0.49, 0.5)).status,
            Status::ok);
  options.tolerance = 5e-4;
  EXPECT_EQ(refine_one(options, pair.reference, pair.current, 50, 50, start_at(0.49, 0.5)).status,
            Status::not_converged);
  options.tolerance = 1e-4;
  options.min_zncc = 1;
  options.max_iterations = 30;
  EXPECT_EQ(refine_one(options, pair.reference, noisy(pair.current, 5, 1), 50, 50).status,
            Status::low_correlation);
}

TEST(Refiner, StepsThatShrinkTooSlowlyAreStuck) {
  const double tolerance = 1e-4;  // ten times that is enough in the last iteration, and stuck_margin remains
  for (const int most : {10, 30})
    for (const double ratio : {0.1, 0.5, 0.7, 0.9, 1.0, 1.5})
      for (const double step : {1e-3, 0.02, 0.5})
        for (int iteration = 2; iteration < most; ++iteration) {
          const double last = step * std::pow(std::min(ratio, 1.0), most - iteration);
          if (std::abs(last / (100 * tolerance) - 1) < 1e-6) continue;
          EXPECT_EQ(icgn::is_stuck(iteration, most, step, step / ratio, tolerance), last > 100 * tolerance)
              << most << ", " << ratio << ", " << step << ", " << iteration;
        }
  EXPECT_FALSE(icgn::is_stuck(1, 10, 5.0, 0.0, tolerance));  // one step tells nothing
}

TEST(Refiner, AForeignImageIsGivenUpBeforeTheLastIteration) {
  const auto pair = speckle_pair(100, 100, 1.7, 13, translation(0, 0));
  const auto other = speckle_pair(100, 100, 1.7, 14, translation(0, 0));
  const RefineOptions options = options_of(33, 1);
  int stopped = 0;
  for (int y = 40; y <= 60; y += 5)
    for (int x = 40; x <= 60; x += 5) {
      const RefinedPoint p = refine_one(options, pair.reference, other.current, x, y);
      EXPECT_NE(p.status, Status::ok);
      stopped += p.iterations < options.max_iterations;
    }
  EXPECT_GE(stopped, 20);
}

TEST(Refiner, ContrastOfTheReferenceIsItsStandardDeviation) {
  const auto pair = speckle_pair(100, 100, 1.7, 13, translation(0, 0));
  const int xs[] = {50, 4}, ys[] = {50, 90};
  for (const int order : {0, 1, 2}) {
    Refiner refiner(options_of(33, order));
    refiner.set_reference(pair.reference.view(), xs, ys);
    for (int k = 0; k < 2; ++k) {
      double sum = 0, squares = 0, pixels = 0;
      for (int y = std::max(0, ys[k] - 16); y <= std::min(99, ys[k] + 16); ++y)
        for (int x = std::max(0, xs[k] - 16); x <= std::min(99, xs[k] + 16); ++x) {
          const double grey = pair.reference.row<float>(y)[x];
          sum += grey, squares += grey * grey, ++pixels;
        }
      const double free = pixels - (order == 0 ? 4 : order == 1 ? 8 : 14);  // parameters, mean and gain
      EXPECT_NEAR(refiner.reference_contrast(k), std::sqrt((squares - sum * sum / pixels) / free), 1e-2);
    }
  }
  const Image constant = image_of(100, 100, [](int, int) { return 17.0; });
  Refiner flat(options_of(33, 1));
  flat.set_reference(constant.view(), xs, ys);
  EXPECT_EQ(flat.reference_contrast(0), 0);
}

}  // namespace
}  // namespace dic
