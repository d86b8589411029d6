#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <dic/kernels/spline.hpp>
#include <dic/refine.hpp>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "refine/image.hpp"
#include "support/gpu_test.hpp"
#include "support/speckle.hpp"

// The refinement on the GPU against that on the CPU, which the unit tests hold against truth.
namespace dic {
namespace {

using test::converted;
using test::GpuTest;
using test::grey_of;
using test::image_of;
using test::noisy;
using test::random_image;
using test::Speckle;

constexpr double most_difference = 1e-4;  // px, between CPU and GPU

// ---- splines ----

/// An image in device memory and a plane to be filled, with its margin.
class DeviceSpline {
 public:
  DeviceSpline(const Image& image, Interpolation interpolation)
      : layout_(image.width(), image.height()), interpolation_(interpolation) {
    const ImageView view = image;
    const std::size_t bytes = view.row_bytes * view.height;
    kernels::upload(pixels_.reserve(bytes), view.data, bytes, stream_);
    device_view_ = view;
    device_view_.data = pixels_.data();
  }

  using Coefficients = std::vector<kernels::CoefficientPair>;
  Coefficients coefficients() {
    auto* plane = poisoned<kernels::CoefficientPair>(plane_, layout_.elements());
    kernels::launch_spline_coefficients(device_view_, interpolation_, plane + layout_.origin(),
                                        stream_.handle());
    return fetched(plane, layout_.elements());
  }

  struct Reference {
    std::vector<kernels::ReferencePixel> pixels;
    std::vector<std::uint32_t> rest;
    kernels::GreyRange range;
  };
  Reference reference() {
    auto* pixels = poisoned<kernels::ReferencePixel>(pixels_plane_, layout_.elements());
    auto* rest = poisoned<std::uint32_t>(rest_plane_, layout_.elements());
    auto* range = poisoned<kernels::GreyRange>(range_, 1);
    kernels::launch_reference_pixels(device_view_, {}, interpolation_, pixels + layout_.origin(),
                                     rest + layout_.origin(), range, stream_.handle());
    return {fetched(pixels, layout_.elements()), fetched(rest, layout_.elements()), fetched(range, 1)[0]};
  }

  /// The same of some rows only, of an image that has no others than those that are read.
  Coefficients coefficients(const kernels::RowRange& rows) {
    forget_rows_beyond(kernels::rows_for_spline(rows, device_view_.height));
    auto* plane = poisoned<kernels::CoefficientPair>(plane_, layout_.elements());
    kernels::launch_spline_coefficients(device_view_, rows, interpolation_, plane + layout_.origin(),
                                        stream_.handle());
    return fetched(plane, layout_.elements());
  }
  Reference reference(const kernels::RowRange& rows) {
    auto* range = range_.reserve<kernels::GreyRange>(1);
    kernels::fill(range, 0, sizeof(*range), stream_.handle());
    const int middle = device_view_.height / 2;
    kernels::launch_grey_range(device_view_, {middle, device_view_.height}, range, stream_.handle());
    kernels::launch_grey_range(device_view_, {0, middle}, range, stream_.handle());
    forget_rows_beyond(kernels::rows_for_spline(rows, device_view_.height));
    auto* pixels = poisoned<kernels::ReferencePixel>(pixels_plane_, layout_.elements());
    auto* rest = poisoned<std::uint32_t>(rest_plane_, layout_.elements());
    kernels::launch_reference_pixels(device_view_, rows, {}, interpolation_, range, pixels + layout_.origin(),
                                     rest + layout_.origin(), stream_.handle());
    return {fetched(pixels, layout_.elements()), fetched(rest, layout_.elements()), fetched(range, 1)[0]};
  }

  std::size_t index(int x, int y) const { return layout_.origin() + y * layout_.stride + x; }

 private:
  /// They become NaN.
  void forget_rows_beyond(const kernels::RowRange& rows) {
    auto* first = static_cast<std::byte*>(pixels_.data());
    const std::ptrdiff_t row = device_view_.row_bytes;
    kernels::fill(first, 0xff, rows.first * row, stream_.handle());
    kernels::fill(first + rows.last * row, 0xff, (device_view_.height - rows.last) * row, stream_.handle());
  }
  template <typename T>
  T* poisoned(kernels::DeviceBuffer& buffer, std::size_t count) {
    kernels::fill(buffer.reserve(count * sizeof(T)), 0xff, count * sizeof(T), stream_.handle());  // NaN
    return static_cast<T*>(buffer.data());
  }
  template <typename T>
  std::vector<T> fetched(const T* values, std::size_t count) {
    std::vector<T> out(count);
    kernels::download(out.data(), values, count * sizeof(T), stream_);
    stream_.synchronize("a spline");
    return out;
  }

  kernels::PlaneLayout layout_;
  Interpolation interpolation_;
  kernels::Stream stream_;
  kernels::DeviceBuffer pixels_, plane_, pixels_plane_, rest_plane_, range_;
  ImageView device_view_;
};

struct SplineCase {
  Interpolation interpolation;
  int width, height;
};
void PrintTo(const SplineCase& c, std::ostream* out) {
  *out << to_string(c.interpolation) << "_" << c.width << "x" << c.height;
}

class SplineOnGpu : public GpuTest, public testing::WithParamInterface<SplineCase> {};

TEST_P(SplineOnGpu, CoefficientsAreThoseOfTheCpu) {
  const auto [interpolation, width, height] = GetParam();
  const Image image = random_image(width, height, 7);
  ThreadPool pool(1);
  PaddedImage expected;
  spline_coefficients(image, interpolation, expected, pool);
  DeviceSpline spline(image, interpolation);
  const DeviceSpline::Coefficients found = spline.coefficients();
  constexpr int margin = kernels::PlaneLayout::margin;
  double error = 0, largest = 0;
  for (int y = -margin; y < height + margin; ++y)
    for (int x = -margin; x < width + margin; ++x) {
      const float upper = found[spline.index(x, y)].upper;
      error = std::max(error, std::abs(double{upper} - *expected.at(x, y)));
      largest = std::max(largest, std::abs(double{*expected.at(x, y)}));
      ASSERT_FALSE(std::isnan(upper)) << x << ", " << y;
      if (y > -margin) {
        ASSERT_EQ(found[spline.index(x, y - 1)].lower, upper) << x << ", " << y;
      }
    }
  EXPECT_LT(error, 3e-6 * largest);
}

/// Grey levels per px: sums of two halves, in a unit that is a power of two.
std::pair<double, double> gradient(const DeviceSpline::Reference& reference, std::size_t at) {
  const auto half = [](std::uint32_t bits) {
    return static_cast<double>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)));
  };
  const double unit = std::ldexp(1, std::ilogb(reference.range.magnitude) - 13);
  const std::uint32_t most = reference.pixels[at].gradient, least = reference.rest[at];
  return {unit * (half(most) + half(least)), unit * (half(most >> 16) + half(least >> 16))};
}

TEST_P(SplineOnGpu, GradientsAreThoseOfTheCpu) {
  const auto [interpolation, width, height] = GetParam();
  const Image image = random_image(width, height, 9);
  ThreadPool pool(1);
  PaddedImage dx, dy;
  spline_gradient(to_float(image, pool), interpolation, dx, dy, pool);
  DeviceSpline spline(image, interpolation);
  const DeviceSpline::Reference found = spline.reference();
  double error = 0;
  float largest = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const std::size_t at = spline.index(x, y);
      const bool outermost = x == 0 || y == 0 || x == width - 1 || y == height - 1;
      ASSERT_EQ(found.pixels[at].grey, image.row<float>(y)[x]);
      const auto [found_x, found_y] = gradient(found, at);
      ASSERT_FALSE(std::isnan(found_x + found_y)) << x << ", " << y;
      error = std::max(error, std::abs(found_x - (outermost ? 0 : *dx.at(x, y))));
      error = std::max(error, std::abs(found_y - (outermost ? 0 : *dy.at(x, y))));
      largest = std::max(largest, image.row<float>(y)[x]);
    }
  EXPECT_LT(error, 5e-4);
  EXPECT_EQ(found.range.largest, largest);
  EXPECT_EQ(found.range.magnitude, largest);
}

bool same_bits(const auto& a, const auto& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

TEST_P(SplineOnGpu, SomeRowsHaveTheBitsOfAll) {
  const auto [interpolation, width, height] = GetParam();
  const Image image = random_image(width, height, 8);
  DeviceSpline whole(image, interpolation);
  const auto all = whole.coefficients();
  const auto reference = whole.reference();
  constexpr int margin = kernels::PlaneLayout::margin;
  for (const kernels::RowRange rows :
       {kernels::RowRange{0, height / 3}, {height / 3, height / 2 + 1}, {height / 2, height}}) {
    if (rows.count() == 0) continue;
    SCOPED_TRACE(testing::Message() << "rows " << rows.first << " to " << rows.last);
    const auto some = DeviceSpline(image, interpolation).coefficients(rows);
    const auto some_reference = DeviceSpline(image, interpolation).reference(rows);
    EXPECT_TRUE(same_bits(some_reference.range, reference.range));
    for (int y = -margin; y < height + margin; ++y)
      for (int x = 0; x < width; ++x) {
        const std::size_t at = whole.index(x, y);
        const bool wanted = y >= rows.first - margin && y < rows.last + margin;
        ASSERT_EQ(same_bits(some[at].upper, all[at].upper), wanted) << x << ", " << y;
        ASSERT_EQ(std::isnan(some[at].upper), !wanted) << x << ", " << y;
        if (wanted && y + 1 < rows.last + margin) {
          ASSERT_TRUE(same_bits(some[at].lower, all[at].lower)) << x << ", " << y;
        }
        ASSERT_TRUE(wanted || std::isnan(some[at].lower)) << x << ", " << y;
        if (y < 0 || y >= height) continue;
        const bool there = y >= rows.first && y < rows.last;
        ASSERT_EQ(same_bits(some_reference.pixels[at], reference.pixels[at]), there) << x << ", " << y;
        ASSERT_EQ(same_bits(some_reference.rest[at], reference.rest[at]), there) << x << ", " << y;
      }
  }
}

std::vector<SplineCase> spline_cases() {
  std::vector<SplineCase> cases;
  for (auto interpolation : {Interpolation::cubic, Interpolation::quintic})
    for (auto [w, h] : {std::pair{1, 9},
                        {9, 1},
                        {1, 1},
                        {2, 3},
                        {7, 31},
                        {64, 64},
                        {65, 63},
                        {300, 5},
                        {130, 200},
                        {320, 128},
                        {368, 176},
                        {401, 299}})
      cases.push_back({interpolation, w, h});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Sizes, SplineOnGpu, testing::ValuesIn(spline_cases()),
                         testing::PrintToStringParamName());

TEST_F(GpuTest, SplinesReadEveryType) {
  const Image image = random_image(70, 41, 3);
  const auto expected = DeviceSpline(image, Interpolation::cubic).coefficients();
  for (const Image& typed :
       {converted<std::uint8_t>(image, ScalarType::u8), converted<std::uint16_t>(image, ScalarType::u16),
        converted<std::int32_t>(image, ScalarType::i32), converted<double>(image, ScalarType::f64)}) {
    const auto found = DeviceSpline(typed, Interpolation::cubic).coefficients();
    for (int y = 0; y < 41; ++y)
      for (int x = 0; x < 70; ++x) {
        const std::size_t at = DeviceSpline(image, Interpolation::cubic).index(x, y);
        ASSERT_EQ(found[at].upper, expected[at].upper) << to_string(typed.type());
      }
  }
}

// ---- refinement ----

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

/// Strain, rotation and a whole-pixel part about the middle.
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

/// Whole-pixel starts near the truth, some of them wrong.
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
  int statuses = 0, ok = 0, more_iterations = 0;  ///< of b than of a, altogether
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

/// At most 1 status in 10,000 may differ; of few, one that lies on a limit. grey_level: of 8 bits.
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
  EXPECT_LE(d.more_iterations, 0.5 * d.ok);  // loose ones, and where a variant hands over to the next
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

/// What a translation cannot follow.
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

/// Which the fast variant takes, column by column; those of 51 px are wider than a warp.
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
  // 12 bits in 16, and a current image of half the contrast.
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

/// So many points that warps have several at once.
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
