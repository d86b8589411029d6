#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <dic/kernels/spline.hpp>
#include <dic/refine.hpp>
#include <limits>
#include <random>
#include <vector>

#include "parity/refine_support.hpp"
#include "refine/image.hpp"
#include "support/gpu_test.hpp"
#include "support/speckle.hpp"

// Tests the refinement on the GPU against the CPU.
namespace dic {
namespace {

using namespace test;

constexpr double most_difference = 1e-4;  // px, between CPU and GPU

struct Pair {
  Image reference, current;
};

/// Speckle whose pixel X moves to X + displacement(X), with noise in both frames.
template <typename Displacement>
Pair speckle_pair(int width, int height, unsigned seed, double noise, const Displacement& displacement) {
  const Speckle speckle(width, height, 1.7, seed, 60);
  const auto moved = [&](int x, int y) {
    const auto [u, v] = displacement(x, y);
    return grey_of(speckle(x + u, y + v));
  };
  const auto still = [&](int x, int y) { return grey_of(speckle(x, y)); };
  return {noisy(image_of(width, height, moved), noise, seed + 1),
          noisy(image_of(width, height, still), noise, seed + 2)};
}

/// Displacement by strain and rotation about the middle, and whole pixels.
auto affine_field(double size, double strain, double angle_deg) {
  const double a = angle_deg * M_PI / 180, c = size / 2;
  return [=](double x, double y) {
    const double dx = x - c, dy = y - c;
    return std::array{3.3 + ((1 + strain) * std::cos(a) - 1) * dx - std::sin(a) * dy,
                      -2.6 + std::sin(a) * dx + ((1 - strain / 3) * std::cos(a) - 1) * dy};
  };
}

struct Points {
  std::vector<int> x, y;
  std::size_t size() const { return x.size(); }
};
Points grid_of(int width, int height, int step, int first = 0) {
  Points out;
  for (int y = first; y < height; y += step)
    for (int x = first; x < width; x += step) {
      out.x.push_back(x);
      out.y.push_back(y);
    }
  return out;
}

using Starts = std::vector<ShapeParameters>;
using Results = std::vector<RefinedPoint>;

/// Whole-pixel starts near the true motion, some of them wrong.
template <typename Displacement>
Starts starts_of(const Points& points, const Displacement& displacement) {
  Starts out(points.size());
  for (std::size_t k = 0; k < points.size(); ++k) {
    const auto [u, v] = displacement(points.x[k], points.y[k]);
    out[k].u = std::round(u);
    out[k].v = std::round(v);
  }
  return out;
}

struct Case {
  RefineOptions options;
  Image roi;
};

Results refine_on(const std::string& device, const Case& c, const Pair& pair, const Points& points,
                  const Starts& starts) {
  Refiner refiner(c.options, device, 1);
  refiner.set_reference(pair.reference, points.x, points.y, c.roi.empty() ? ImageView{} : c.roi.view());
  refiner.set_current(pair.current);
  std::vector<std::int64_t> which(points.size());
  for (std::size_t k = 0; k < which.size(); ++k) which[k] = static_cast<std::int64_t>(k);
  Results out(points.size());
  refiner.refine(which, starts, out);
  return out;
}

struct Difference {
  int statuses = 0, ok = 0, more_iterations = 0;  ///< iterations of b minus iterations of a, in total
  double displacement = 0, gradient = 0, zncc = 0, residual = 0, sigma = 0;
};

Difference difference(const Results& a, const Results& b) {
  Difference d;
  const auto raise = [](double& largest, double value) { largest = std::max(largest, std::abs(value)); };
  for (std::size_t k = 0; k < a.size(); ++k) {
    d.statuses += a[k].status != b[k].status;
    if (a[k].status != Status::ok || b[k].status != Status::ok) continue;
    ++d.ok;
    d.more_iterations += b[k].iterations - a[k].iterations;
    raise(d.displacement, a[k].shape.u - b[k].shape.u);
    raise(d.displacement, a[k].shape.v - b[k].shape.v);
    raise(d.gradient, a[k].shape.ux - b[k].shape.ux);
    raise(d.gradient, a[k].shape.vy - b[k].shape.vy);
    raise(d.zncc, a[k].zncc - b[k].zncc);
    raise(d.residual, a[k].residual_sd - b[k].residual_sd);
    raise(d.sigma, a[k].unit_sigma_u / b[k].unit_sigma_u - 1);
    raise(d.sigma, a[k].unit_sigma_v / b[k].unit_sigma_v - 1);
  }
  return d;
}

/// Expects at most 1 differing status in 10,000, or one, on a limit, of few points. grey_level: of 8 bits.
void expect_agreement(const Case& c, const Pair& pair, const Points& points, const Starts& starts,
                      double share_ok, int most_statuses = 1, double grey_level = 1) {
  const Results cpu = refine_on("cpu", c, pair, points, starts);
  const Results gpu = refine_on("cuda", c, pair, points, starts);
  const Difference d = difference(cpu, gpu);
  const auto count = static_cast<double>(points.size());
  EXPECT_LE(d.statuses, most_statuses + count / 10000);
  EXPECT_GE(d.ok, share_ok * count);
  EXPECT_LE(d.displacement, most_difference);
  EXPECT_LE(d.gradient, most_difference / c.options.subset * 6);
  EXPECT_LE(d.zncc, 1e-4);
  EXPECT_LE(d.residual, 0.01 * grey_level);
  EXPECT_LE(d.sigma, 1e-3);
  // a loose tolerance never ends with the last iteration, and variants hand over at different ones
  EXPECT_LE(d.more_iterations, d.ok);
}

struct RefineCase {
  int subset, order;
  Interpolation interpolation;
};
void PrintTo(const RefineCase& c, std::ostream* out) {
  *out << "subset" << c.subset << "_order" << c.order << "_" << to_string(c.interpolation);
}

constexpr int image_size = 180;

class RefineOnGpu : public GpuTest, public testing::WithParamInterface<RefineCase> {
 protected:
  static Case make() {
    const auto [subset, order, interpolation] = GetParam();
    Case c;
    c.options.subset = subset;
    c.options.order = order;
    c.options.interpolation = interpolation;
    return c;
  }
};

TEST_P(RefineOnGpu, AgreesAtSmallStrain) {
  const auto field = affine_field(image_size, 0.003, 0.1);
  const Pair pair = speckle_pair(image_size, image_size, 1, 2, field);
  const Points points = grid_of(image_size, image_size, 7);  // subsets cut by every border
  expect_agreement(make(), pair, points, starts_of(points, field), 0.6);
}

/// A motion that a translation cannot describe.
class RefineSlopesOnGpu : public RefineOnGpu {};

TEST_P(RefineSlopesOnGpu, AgreesAtLargeStrain) {
  const auto field = affine_field(image_size, 0.03, 2);
  const Pair pair = speckle_pair(image_size, image_size, 2, 2, field);
  const Points points = grid_of(image_size, image_size, 7);
  expect_agreement(make(), pair, points, starts_of(points, field), 0.5);
}

std::vector<RefineCase> refine_cases(std::vector<int> orders) {
  std::vector<RefineCase> cases;
  for (auto interpolation : {Interpolation::cubic, Interpolation::quintic})
    for (int order : orders)
      for (int subset : {15, 21, 31, 33, 37, 51}) cases.push_back({subset, order, interpolation});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Subsets, RefineOnGpu, testing::ValuesIn(refine_cases({0, 1, 2})),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Subsets, RefineSlopesOnGpu, testing::ValuesIn(refine_cases({1, 2})),
                         testing::PrintToStringParamName());

/// The usual case: subset 31 under a small strain.
class RefineParity : public GpuTest {
 protected:
  RefineParity()
      : field_(affine_field(image_size, 0.004, -0.2)),
        pair_(speckle_pair(image_size, image_size, 3, 1.5, field_)),
        points_(grid_of(image_size, image_size, 6)) {
    case_.options.subset = 31;
  }

  decltype(affine_field(0, 0, 0)) field_;
  Case case_;
  Pair pair_;
  Points points_;
};

TEST_F(RefineParity, AgreesUnderAMask) {
  case_.roi = image_of(image_size, image_size, [](int x, int y) {
    return std::hypot(x - 60, y - 70) < 22 || std::hypot(x - 130, y - 120) < 9 ? 0.0 : 255.0;
  });
  case_.roi = converted<std::uint8_t>(case_.roi, ScalarType::u8);
  for (int order : {0, 1, 2}) {
    case_.options.order = order;
    expect_agreement(case_, pair_, points_, starts_of(points_, field_), 0.6);
  }
}

/// The fast variant takes cut rectangles column by column; subsets of 51 px are wider than a warp.
TEST_F(RefineParity, AgreesWhereTheRoiCutsRectangles) {
  case_.roi = image_of(image_size, image_size,
                       [](int x, int y) { return x >= 20 && x < 151 && y >= 31 && y < 149 ? 255.0 : 0.0; });
  case_.roi = converted<std::uint8_t>(case_.roi, ScalarType::u8);
  for (const auto& [subset, order, interpolation] : refine_cases({0, 1, 2})) {
    case_.options.subset = subset;
    case_.options.order = order;
    case_.options.interpolation = interpolation;
    expect_agreement(case_, pair_, points_, starts_of(points_, field_), 0.4);
  }
}

/// The window applies to whole, clipped and masked subsets.
TEST_F(RefineParity, AgreesWithAGaussianWindow) {
  case_.options.weights = SubsetWeights::gaussian;
  const Starts starts = starts_of(points_, field_);
  for (const bool masked : {false, true}) {
    if (masked)
      case_.roi = converted<std::uint8_t>(
          image_of(image_size, image_size,
                   [](int x, int y) { return std::hypot(x - 60, y - 70) < 22 ? 0.0 : 255.0; }),
          ScalarType::u8);
    for (const auto& [subset, order, interpolation] : refine_cases({0, 1, 2})) {
      SCOPED_TRACE("subset " + std::to_string(subset) + ", order " + std::to_string(order));
      case_.options.subset = subset;
      case_.options.order = order;
      case_.options.interpolation = interpolation;
      expect_agreement(case_, pair_, points_, starts, 0.5);
    }
  }
}

TEST_F(RefineParity, PredictsTheSameNoiseOfAGaussianWindow) {
  case_.options.weights = SubsetWeights::gaussian;
  const Starts starts = starts_of(points_, field_);
  const Results cpu = refine_on("cpu", case_, pair_, points_, starts);
  const Results gpu = refine_on("cuda", case_, pair_, points_, starts);
  for (std::size_t k = 0; k < cpu.size(); ++k) {
    if (cpu[k].status != Status::ok || gpu[k].status != Status::ok) continue;
    const double variance = cpu[k].unit_sigma_u * cpu[k].unit_sigma_v;
    EXPECT_NEAR(gpu[k].unit_covariance, cpu[k].unit_covariance, 1e-3 * variance) << k;
    const GradientNoise &a = cpu[k].gradient_noise, &b = gpu[k].gradient_noise;
    EXPECT_NEAR(b.uu / a.uu, 1, 2e-3) << k;
    EXPECT_NEAR(b.vv / a.vv, 1, 2e-3) << k;
    EXPECT_NEAR(b.uv, a.uv, 2e-3 * a.uu) << k;
  }
}

TEST_F(RefineParity, AgreesWhereThereIsNoContrast) {
  for (Image* image : {&pair_.reference, &pair_.current})
    for (int y = 0; y < image_size; ++y)
      for (int x = 0; x < image_size; ++x) {
        if (x < 70 && y < 70) image->row<float>(y)[x] = 128;
        if (x > 100 && y > 100) image->row<float>(y)[x] = x % 8 < 4 ? 50 : 200;  // stripes
      }
  const Results gpu = refine_on("cuda", case_, pair_, points_, starts_of(points_, field_));
  EXPECT_GT(std::ranges::count(gpu, Status::flat, &RefinedPoint::status), 50);
  // Rounding decides whether a matrix without one direction is regular.
  expect_agreement(case_, pair_, points_, starts_of(points_, field_), 0.3, 2);
}

TEST_F(RefineParity, AgreesOnBadStarts) {
  Starts starts = starts_of(points_, field_);
  std::mt19937 random(4);
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinite = std::numeric_limits<double>::infinity();
  for (ShapeParameters& start : starts) {
    switch (random() % 8) {
      case 0:
        start.u += 200;
        break;
      case 1:
        start.v = -1e300;
        break;
      case 2:
        start.ux = nan;
        break;
      case 3:
        start.v = infinite;
        break;
      case 4:
        start.vy = -1.5;
        break;
      default:
        break;
    }
  }
  expect_agreement(case_, pair_, points_, starts, 0.3);
}

TEST_F(RefineParity, AgreesWhereTheIterationsRunOut) {
  case_.options.max_iterations = 2;
  case_.options.tolerance = 1e-5;
  const Results gpu = refine_on("cuda", case_, pair_, points_, starts_of(points_, field_));
  EXPECT_GT(std::ranges::count(gpu, Status::not_converged, &RefinedPoint::status), 500);
  expect_agreement(case_, pair_, points_, starts_of(points_, field_), 0);
}

TEST_F(RefineParity, AgreesOnForeignImages) {
  pair_.current = speckle_pair(image_size, image_size, 77, 2, field_).current;
  const Results cpu = refine_on("cpu", case_, pair_, points_, starts_of(points_, field_));
  const Results gpu = refine_on("cuda", case_, pair_, points_, starts_of(points_, field_));
  for (std::size_t k = 0; k < gpu.size(); ++k)
    EXPECT_EQ(gpu[k].status == Status::ok, cpu[k].status == Status::ok) << k;
}

TEST_F(RefineParity, AgreesInOtherTypesAndUnderOtherLight) {
  expect_agreement(case_,
                   {converted<std::uint8_t>(pair_.reference, ScalarType::u8),
                    converted<std::uint8_t>(pair_.current, ScalarType::u8)},
                   points_, starts_of(points_, field_), 0.6);
  // The images have 12 of 16 bits, the current one half the contrast.
  expect_agreement(case_,
                   {converted<std::uint16_t>(pair_.reference, ScalarType::u16, 16),
                    converted<std::uint16_t>(pair_.current, ScalarType::u16, 8)},
                   points_, starts_of(points_, field_), 0.6, 1, 16);
}

TEST_F(RefineParity, AgreesInAnyRangeOfGreyValues) {
  for (const double factor : {1e4, 1e-6}) {  // gradients far beyond those that half floats can hold
    const Pair scaled{converted<float>(pair_.reference, ScalarType::f32, factor),
                      converted<float>(pair_.current, ScalarType::f32, factor)};
    const Starts starts = starts_of(points_, field_);
    const Difference d = difference(refine_on("cpu", case_, scaled, points_, starts),
                                    refine_on("cuda", case_, scaled, points_, starts));
    EXPECT_EQ(d.statuses, 0);
    EXPECT_GE(d.ok, 0.6 * static_cast<double>(points_.size()));
    EXPECT_LE(d.displacement, most_difference);
    EXPECT_LE(d.residual, 0.01 * factor);
  }
}

/// There are so many points that warps process several at once.
TEST_F(RefineParity, AgreesAtEveryPixel) {
  const Points points = grid_of(image_size, image_size, 1);
  for (int order : {1, 2}) {
    case_.options.order = order;
    expect_agreement(case_, pair_, points, starts_of(points, field_), 0.6);
  }
}

TEST_F(RefineParity, AgreesAtScatteredPoints) {
  std::mt19937 random(9);
  std::uniform_int_distribution<int> anywhere(0, image_size - 1);
  Points scattered;
  for (int k = 0; k < 500; ++k) {
    scattered.x.push_back(anywhere(random));
    scattered.y.push_back(k % 7 == 0 && k > 0 ? scattered.y.back() : anywhere(random));
  }
  for (int order : {0, 1, 2}) {
    case_.options.order = order;
    expect_agreement(case_, pair_, scattered, starts_of(scattered, field_), 0.6);
  }
}

TEST_F(RefineParity, RunsAreIdentical) {
  const Starts starts = starts_of(points_, field_);
  for (int order : {1, 2}) {
    case_.options.order = order;
    const Results first = refine_on("cuda", case_, pair_, points_, starts);
    const Results second = refine_on("cuda", case_, pair_, points_, starts);
    for (std::size_t k = 0; k < first.size(); ++k) {
      EXPECT_EQ(std::memcmp(&first[k].shape, &second[k].shape, sizeof(ShapeParameters)), 0) << k;
      EXPECT_EQ(first[k].zncc, second[k].zncc);
      EXPECT_EQ(first[k].iterations, second[k].iterations);
    }
  }
}

TEST_F(RefineParity, TakesANewReferenceOfAnotherSize) {
  Refiner refiner(case_.options, "cuda", 1);
  refiner.set_reference(pair_.reference, points_.x, points_.y);
  refiner.set_current(pair_.current);
  const Pair small = speckle_pair(90, 120, 8, 1, field_);
  const std::vector<int> x{40, 50}, y{60, 70};
  refiner.set_reference(small.reference, x, y);
  refiner.set_current(small.current);
  const auto [u, v] = field_(50, 70);
  ShapeParameters start;
  start.u = std::round(u);
  start.v = std::round(v);
  const RefinedPoint p = refiner.refine(1, start);
  EXPECT_EQ(p.status, Status::ok);
  EXPECT_NEAR(p.shape.u, u, 0.02);
  EXPECT_NEAR(p.shape.v, v, 0.02);
}

}  // namespace
}  // namespace dic
