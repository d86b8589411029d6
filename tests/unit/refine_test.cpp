#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/reflect.hpp>
#include <dic/shared/shape.hpp>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "refine/image.hpp"
#include "refine/subset_kernels.hpp"
#include "support/speckle.hpp"

namespace dic {
namespace {

using test::converted;
using test::grey_of;
using test::image_of;
using test::noisy;
using test::random_image;
using test::Speckle;

// ---- naive truth, in double ----

int degree_of(Interpolation interpolation) { return interpolation == Interpolation::cubic ? 3 : 5; }
/// The factor that the product's coefficients carry.
double coefficient_scale(Interpolation interpolation) {
  return interpolation == Interpolation::cubic ? 36 : 14400;
}

/// Centred B-spline by truncated powers.
double bspline(int degree, double x) {
  double sum = 0, binomial = 1, factorial = 1;
  for (int k = 0; k <= degree + 1; ++k) {
    sum += (k % 2 ? -binomial : binomial) * std::pow(std::max(0.0, x + 0.5 * (degree + 1) - k), degree);
    binomial = binomial * (degree + 1 - k) / (k + 1);
  }
  for (int k = 2; k <= degree; ++k) factorial *= k;
  return sum / factorial;
}
double bspline_derivative(int degree, double x) {
  return bspline(degree - 1, x + 0.5) - bspline(degree - 1, x - 0.5);
}

/// Coefficients by solving the interpolation conditions; natural boundary: coefficients go on beyond the edge
/// by reflection in the edge's own.
class NaiveSpline {
 public:
  NaiveSpline(const Image& image, Interpolation interpolation) : degree_(degree_of(interpolation)) {
    Eigen::MatrixXd values(image.height(), image.width());
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) values(y, x) = image.row<float>(y)[x];
    const Eigen::MatrixXd columns = conditions(image.height()).partialPivLu().solve(values);
    coefficients_ = conditions(image.width()).partialPivLu().solve(columns.transpose()).transpose();
  }

  double at(double x, double y) const { return sum(x, y, bspline, bspline); }
  double dx(double x, double y) const { return sum(x, y, bspline_derivative, bspline); }
  double dy(double x, double y) const { return sum(x, y, bspline, bspline_derivative); }
  double coefficient(int x, int y) const {
    const int w = static_cast<int>(coefficients_.cols()), h = static_cast<int>(coefficients_.rows());
    if (w == 1) x = 0;
    if (h == 1) y = 0;
    if (x < 0) return 2 * coefficient(0, y) - coefficient(-x, y);
    if (x >= w) return 2 * coefficient(w - 1, y) - coefficient(2 * (w - 1) - x, y);
    if (y < 0) return 2 * coefficient(x, 0) - coefficient(x, -y);
    if (y >= h) return 2 * coefficient(x, h - 1) - coefficient(x, 2 * (h - 1) - y);
    return coefficients_(y, x);
  }

 private:
  static void add_tap(Eigen::MatrixXd& out, int row, int tap, double weight) {
    const int n = static_cast<int>(out.cols());
    if (n == 1) tap = 0;
    if (tap >= 0 && tap < n) {
      out(row, tap) += weight;
      return;
    }
    const int end = tap < 0 ? 0 : n - 1;
    out(row, end) += 2 * weight;
    add_tap(out, row, 2 * end - tap, -weight);
  }
  Eigen::MatrixXd conditions(int n) const {
    Eigen::MatrixXd out = Eigen::MatrixXd::Zero(n, n);
    for (int k = 0; k < n; ++k)
      for (int tap = k - degree_ / 2; tap <= k + degree_ / 2; ++tap)
        add_tap(out, k, tap, bspline(degree_, k - tap));
    return out;
  }
  template <typename BasisX, typename BasisY>
  double sum(double x, double y, const BasisX& basis_x, const BasisY& basis_y) const {
    const int x0 = static_cast<int>(std::floor(x)) - degree_ / 2, taps = degree_ + 1;
    const int y0 = static_cast<int>(std::floor(y)) - degree_ / 2;
    std::array<double, 6> wx{}, wy{};
    for (int k = 0; k < taps; ++k) {
      wx[k] = basis_x(degree_, x - x0 - k);
      wy[k] = basis_y(degree_, y - y0 - k);
    }
    double out = 0;
    for (int r = 0; r < taps; ++r)
      for (int c = 0; c < taps; ++c) out += wy[r] * wx[c] * coefficient(x0 + c, y0 + r);
    return out;
  }

  int degree_;
  Eigen::MatrixXd coefficients_;
};

// ---- spline ----

struct SplineCase {
  Interpolation interpolation;
  int width, height;
};
void PrintTo(const SplineCase& c, std::ostream* out) {
  *out << to_string(c.interpolation) << "_" << c.width << "x" << c.height;
}

class Spline : public testing::TestWithParam<SplineCase> {};

TEST_P(Spline, CoefficientsSolveTheInterpolationConditions) {
  const auto [interpolation, width, height] = GetParam();
  const Image image = random_image(width, height, 7);
  const NaiveSpline truth(image, interpolation);
  ThreadPool pool(2);
  PaddedImage coefficients;
  spline_coefficients(image, interpolation, coefficients, pool);
  const double scale = coefficient_scale(interpolation);
  double error = 0, largest = 0;
  for (int y = -PaddedImage::kMargin; y < height + PaddedImage::kMargin; ++y)
    for (int x = -PaddedImage::kMargin; x < width + PaddedImage::kMargin; ++x) {
      const double expected = truth.coefficient(x, y);
      error = std::max(error, std::abs(*coefficients.at(x, y) * scale - expected));
      largest = std::max(largest, std::abs(expected));
    }
  EXPECT_LT(error, 3e-6 * largest);  // float32, amplified by the filter on white noise
}

TEST_P(Spline, InterpolatesThePixels) {
  const auto [interpolation, width, height] = GetParam();
  const Image image = random_image(width, height, 8);
  ThreadPool pool(2);
  PaddedImage coefficients;
  spline_coefficients(image, interpolation, coefficients, pool);
  const int degree = degree_of(interpolation), reach = degree / 2;
  double largest = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      double value = 0;
      for (int r = -reach; r <= reach; ++r)
        for (int c = -reach; c <= reach; ++c)
          value += bspline(degree, r) * bspline(degree, c) * *coefficients.at(x + c, y + r);
      largest =
          std::max(largest, std::abs(coefficient_scale(interpolation) * value - image.row<float>(y)[x]));
    }
  EXPECT_LT(largest, 5e-4);
}

TEST_P(Spline, GradientIsTheDerivativeOfTheSpline) {
  const auto [interpolation, width, height] = GetParam();
  const Image image = random_image(width, height, 9);
  const NaiveSpline truth(image, interpolation);
  ThreadPool pool(2);
  PaddedImage padded = to_float(image, pool), dx, dy;
  spline_gradient(padded, interpolation, dx, dy, pool);
  double largest = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      largest = std::max(largest, std::abs(*dx.at(x, y) - truth.dx(x, y)));
      largest = std::max(largest, std::abs(*dy.at(x, y) - truth.dy(x, y)));
    }
  EXPECT_LT(largest, 5e-4);
}

std::vector<SplineCase> spline_cases() {
  std::vector<SplineCase> cases;
  for (auto interpolation : {Interpolation::cubic, Interpolation::quintic})
    for (auto [w, h] :
         {std::pair{1, 9}, {9, 1}, {1, 1}, {2, 3}, {3, 2}, {7, 31}, {31, 7}, {16, 17}, {1024, 3}, {5, 530}})
      cases.push_back({interpolation, w, h});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Sizes, Spline, testing::ValuesIn(spline_cases()), testing::PrintToStringParamName());

TEST(Spline, ReadsEveryTypeAndPaddedRows) {
  const Image image = random_image(37, 21, 3);
  ThreadPool pool(1);
  PaddedImage expected, out;
  spline_coefficients(image, Interpolation::cubic, expected, pool);
  const Image images[] = {
      converted<std::uint8_t>(image, ScalarType::u8), converted<std::uint16_t>(image, ScalarType::u16),
      converted<std::int32_t>(image, ScalarType::i32), converted<double>(image, ScalarType::f64)};
  for (const Image& typed : images) {
    spline_coefficients(typed, Interpolation::cubic, out, pool);
    for (int y = 0; y < 21; ++y)
      for (int x = 0; x < 37; ++x) ASSERT_EQ(*out.at(x, y), *expected.at(x, y)) << to_string(typed.type());
  }
  ImageView left = image;
  left.width = 20;
  spline_coefficients(left, Interpolation::cubic, out, pool);
  const Image cropped = image_of(20, 21, [&](int x, int y) { return image.row<float>(y)[x]; });
  spline_coefficients(cropped, Interpolation::cubic, expected, pool);
  for (int y = 0; y < 21; ++y)
    for (int x = 0; x < 20; ++x) ASSERT_EQ(*out.at(x, y), *expected.at(x, y));
}

/// Step by step from the definition.
double naive_reflected(const std::vector<float>& line, int k) {
  const int end = k < 0 ? 0 : static_cast<int>(line.size()) - 1;
  if (line.size() == 1 || (k >= 0 && k <= end)) return line[line.size() == 1 ? 0 : k];
  return 2.0 * line[end] - naive_reflected(line, 2 * end - k);
}

TEST(PointReflection, ContinuesALineHoweverFar) {
  for (const std::vector<float>& line :
       {std::vector<float>{7}, {3, 8}, {1, 5, 2}, {4, 1, 9, 16, 3}, {0, 250, 13, 14, 90, 255, 31}}) {
    const auto n = static_cast<int>(line.size());
    for (int k = -40; k <= 40; ++k)
      ASSERT_EQ(point_reflected([&](int i) { return line.at(i); }, n, k), naive_reflected(line, k))
          << n << " elements, " << k;
  }
}

// ---- sums over a subset ----

struct SubsetCase {
  SubsetRect rect;
  bool weighted;
};
/// Odd and cut subsets around the widths of SIMD vectors, with and without excluded pixels.
std::vector<SubsetCase> subset_cases() {
  std::vector<SubsetCase> cases;
  for (bool weighted : {false, true}) {
    for (int r : {3, 4, 7, 8, 10, 15, 16, 25}) cases.push_back({{-r, r, -r, r}, weighted});
    cases.push_back({{-2, 10, -10, 4}, weighted});
    cases.push_back({{-10, 0, 0, 10}, weighted});
  }
  return cases;
}

/// Calls body once for every SIMD target that this machine and this build have.
template <typename Body>
void on_every_simd_target(const Body& body) {
  const std::int64_t all = hwy::SupportedTargets();
  for (std::int64_t target = 1; target > 0; target <<= 1) {
    if ((all & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

/// A reference and a current image with everything that the sums need, and the naive spline of the current.
class Sums : public testing::TestWithParam<Interpolation> {
 protected:
  static constexpr int kSize = 120, kX = 57, kY = 61;

  Sums()
      : pool_(1),
        reference_image_(random_image(kSize, kSize, 1)),
        current_image_(random_image(kSize, kSize, 2)),
        spline_(current_image_, GetParam()),
        reference_(to_float(reference_image_, pool_)),
        weight_(kSize, kSize) {
    spline_gradient(reference_, GetParam(), dx_, dy_, pool_);
    spline_coefficients(current_image_, GetParam(), coefficients_, pool_);
    std::mt19937 random(5);
    for (int y = 0; y < kSize; ++y)
      for (int x = 0; x < kSize; ++x) *weight_.at(x, y) = random() % 4 ? 1.0f : 0.0f;
  }

  ReferencePatch patch(const SubsetCase& c) const {
    return {reference_.at(kX, kY), dx_.at(kX, kY), dy_.at(kX, kY), c.weighted ? weight_.at(kX, kY) : nullptr,
            reference_.stride(),   c.rect};
  }
  /// Calls body(i, j) for the pixels that count.
  template <typename Body>
  void each_pixel(const SubsetCase& c, const Body& body) const {
    for (int j = c.rect.top; j <= c.rect.bottom; ++j)
      for (int i = c.rect.left; i <= c.rect.right; ++i)
        if (!c.weighted || *weight_.at(kX + i, kY + j) != 0) body(i, j);
  }

  /// sum a(i, j) i^p j^q must equal `sum` up to float rounding of its terms.
  template <typename Term>
  void expect_moment(const SubsetCase& c, double sum, int p, int q, const Term& term) const {
    double expected = 0, square = 0;
    each_pixel(c, [&](int i, int j) {
      const double value = term(i, j) * std::pow(i, p) * std::pow(j, q);
      expected += value;
      square += value * value;
    });
    EXPECT_NEAR(sum, expected, 2e-5 * std::sqrt(square) + 1e-9) << "moment " << p << ", " << q;
  }
  template <typename Term>
  void expect_moments(const SubsetCase& c, const double* sums, int degree, const Term& term) const {
    for (int q = 0; q <= degree; ++q)
      for (int p = 0; p + q <= degree; ++p) expect_moment(c, sums[icgn::monomial_index(p, q)], p, q, term);
  }

  void check_reference(const SubsetCase& c, int order) const {
    ReferenceSubsetSums sums;
    reference_sums(patch(c), order, sums);
    double count = 0, total = 0;
    each_pixel(c, [&](int i, int j) {
      ++count;
      total += *reference_.at(kX + i, kY + j);
    });
    EXPECT_EQ(sums.count, count);
    EXPECT_NEAR(sums.mean, total / count, 1e-5 * 255);
    const auto f = [&](int i, int j) { return *reference_.at(kX + i, kY + j) - total / count; };
    const auto gx = [&](int i, int j) { return static_cast<double>(*dx_.at(kX + i, kY + j)); };
    const auto gy = [&](int i, int j) { return static_cast<double>(*dy_.at(kX + i, kY + j)); };
    expect_moment(c, sums.grey_grey, 0, 0, [&](int i, int j) { return f(i, j) * f(i, j); });
    expect_moments(c, sums.dx, order, gx);
    expect_moments(c, sums.dy, order, gy);
    expect_moments(c, sums.grey_dx, order, [&](int i, int j) { return f(i, j) * gx(i, j); });
    expect_moments(c, sums.grey_dy, order, [&](int i, int j) { return f(i, j) * gy(i, j); });
    expect_moments(c, sums.dx_dx, 2 * order, [&](int i, int j) { return gx(i, j) * gx(i, j); });
    expect_moments(c, sums.dx_dy, 2 * order, [&](int i, int j) { return gx(i, j) * gy(i, j); });
    expect_moments(c, sums.dy_dy, 2 * order, [&](int i, int j) { return gy(i, j) * gy(i, j); });
  }

  void check_current(const SubsetCase& c, int order, const ShapeParameters& shape) const {
    constexpr int kDx = 3, kDy = -2;  // integer part of the displacement
    const GreyFit fit{100, 120, 0.7};
    const CurrentPatch current{coefficients_.at(kX + kDx, kY + kDy), coefficients_.stride(), shape, fit};
    const int width = c.rect.right - c.rect.left + 1;
    std::vector<double> values(static_cast<std::size_t>(width) * (c.rect.bottom - c.rect.top + 1));
    const auto e = [&](int i, int j) -> double& {
      return values[(j - c.rect.top) * width + i - c.rect.left];
    };
    const auto f = [&](int i, int j) { return *reference_.at(kX + i, kY + j) - fit.mean; };
    each_pixel(c, [&](int i, int j) {
      e(i, j) = spline_.at(kX + kDx + i + shape.u_at(i, j), kY + kDy + j + shape.v_at(i, j)) - fit.level -
                fit.contrast * f(i, j);
    });
    for (const Arithmetic arithmetic : {Arithmetic::floats, Arithmetic::doubles}) {
      CurrentSums sums;
      current_sums(patch(c), current, order, GetParam(), arithmetic, sums);
      expect_moment(c, sums.rest, 0, 0, e);
      expect_moment(c, sums.rest_rest, 0, 0, [&](int i, int j) { return e(i, j) * e(i, j); });
      expect_moment(c, sums.reference_rest, 0, 0, [&](int i, int j) { return f(i, j) * e(i, j); });
      expect_moments(c, sums.dx, order, [&](int i, int j) { return *dx_.at(kX + i, kY + j) * e(i, j); });
      expect_moments(c, sums.dy, order, [&](int i, int j) { return *dy_.at(kX + i, kY + j) * e(i, j); });
    }
  }

  ThreadPool pool_;
  Image reference_image_, current_image_;
  NaiveSpline spline_;
  PaddedImage reference_, dx_, dy_, weight_, coefficients_;
};

ShapeParameters affine(double u, double v, double angle_deg, double stretch) {
  const double a = angle_deg * std::numbers::pi / 180;
  ShapeParameters s;
  s.u = u;
  s.v = v;
  s.ux = (1 + stretch) * std::cos(a) - 1;
  s.uy = -std::sin(a);
  s.vx = (1 + stretch) * std::sin(a);
  s.vy = std::cos(a) - 1;
  return s;
}

ShapeParameters curved(ShapeParameters s, double curvature) {
  s.uxx = curvature;
  s.uxy = -0.7 * curvature;
  s.uyy = 0.4 * curvature;
  s.vxx = -0.5 * curvature;
  s.vxy = 0.9 * curvature;
  s.vyy = -curvature;
  return s;
}

TEST_P(Sums, ReferenceSumsEqualNaiveSums) {
  on_every_simd_target([&] {
    for (const SubsetCase& c : subset_cases())
      for (int order : {0, 1, 2}) check_reference(c, order);
  });
}

TEST_P(Sums, CurrentSumsEqualNaiveSumsOfTranslations) {
  on_every_simd_target([&] {
    for (const SubsetCase& c : subset_cases())
      for (auto [u, v] : {std::pair{0.0, 0.0}, {0.5, -0.5}, {-0.31, 0.02}})
        check_current(c, 0, affine(u, v, 0, 0));
  });
}

TEST_P(Sums, CurrentSumsEqualNaiveSumsWhereNoOneOrManyKnotsAreCrossed) {
  on_every_simd_target([&] {
    for (const SubsetCase& c : subset_cases())
      for (auto [angle, stretch] :
           {std::pair{0.1, 0.001}, {-1.0, 0.02}, {3.0, -0.05}, {10.0, 0.2}, {-40.0, -0.3}})
        check_current(c, 1, affine(0.2, -0.4, angle, stretch));
  });
}

TEST_P(Sums, CurrentSumsEqualNaiveSumsOfCurvedWarps) {
  on_every_simd_target([&] {
    for (const SubsetCase& c : subset_cases())
      for (double curvature : {1e-4, -2e-3, 0.02})
        check_current(c, 2, curved(affine(-0.1, 0.45, 1, 0.01), curvature));
  });
}

INSTANTIATE_TEST_SUITE_P(Interpolations, Sums, testing::Values(Interpolation::cubic, Interpolation::quintic),
                         [](const auto& test) { return std::string(to_string(test.param)); });

// ---- shape functions ----

std::array<double, 2> apply(const Warp& w, double x, double y) {
  const auto value = [&](const Quadratic& q) {
    return q.c + q.x * x + q.y * y + q.xx * x * x + q.xy * x * y + q.yy * y * y;
  };
  return {value(w.x), value(w.y)};
}

TEST(Shape, WarpMovesByTheDisplacement) {
  const ShapeParameters s = curved(affine(3, -2, 20, 0.1), 0.01);
  for (auto [x, y] : {std::pair{0.0, 0.0}, {5.0, -7.0}, {-16.0, 16.0}}) {
    EXPECT_NEAR(apply(warp_of(s), x, y)[0], x + s.u_at(x, y), 1e-12);
    EXPECT_NEAR(apply(warp_of(s), x, y)[1], y + s.v_at(x, y), 1e-12);
  }
  const ShapeParameters back = parameters_of(warp_of(s));
  EXPECT_NEAR(back.uxx, s.uxx, 1e-15);
  EXPECT_NEAR(back.vxy, s.vxy, 1e-15);
  EXPECT_NEAR(back.vy, s.vy, 1e-15);
}

TEST(Shape, ComposeAndInverseAreExactForAffineWarps) {
  const Warp outer = warp_of(affine(3, -2, 20, 0.1)), inner = warp_of(affine(-7, 0.5, -35, -0.2));
  for (auto [x, y] : {std::pair{0.0, 0.0}, {5.0, -7.0}, {-16.0, 16.0}}) {
    const auto [ix, iy] = apply(inner, x, y);
    EXPECT_NEAR(apply(compose(outer, inner), x, y)[0], apply(outer, ix, iy)[0], 1e-12);
    EXPECT_NEAR(apply(compose(outer, inner), x, y)[1], apply(outer, ix, iy)[1], 1e-12);
    const auto [bx, by] = apply(inverse(inner), ix, iy);
    EXPECT_NEAR(bx, x, 1e-12);
    EXPECT_NEAR(by, y, 1e-12);
  }
}

TEST(Shape, ComposeAgreesToSecondOrderForCurvedWarps) {
  // What is dropped is of degree 3: halving the distance divides the difference by 8.
  const Warp outer = warp_of(curved(affine(0.4, -0.2, 5, 0.02), 0.003));
  const Warp inner = warp_of(curved(affine(-0.3, 0.1, -4, 0.05), -0.004));
  const auto error = [&](double x, double y) {
    const auto [ix, iy] = apply(inner, x, y);
    const auto direct = apply(outer, ix, iy), composed = apply(compose(outer, inner), x, y);
    return std::hypot(direct[0] - composed[0], direct[1] - composed[1]);
  };
  EXPECT_NEAR(error(0, 0), 0, 1e-14);
  EXPECT_GT(error(16, -12), 1e-4);
  EXPECT_NEAR(error(4, -3) / error(2, -1.5), 8, 0.5);
}

TEST(Shape, InverseAgreesToSecondOrderForCurvedWarps) {
  // The inverse is expanded where the linear part's inverse lies: exact to second order without translation.
  const Warp warp = warp_of(curved(affine(0, 0, 5, 0.02), 0.003));
  const auto error = [&](double x, double y) {
    const auto [wx, wy] = apply(warp, x, y);
    const auto [bx, by] = apply(inverse(warp), wx, wy);
    return std::hypot(bx - x, by - y);
  };
  EXPECT_GT(error(16, -12), 1e-4);
  EXPECT_NEAR(error(2, -1.5) / error(1, -0.75), 8, 0.5);
}

TEST(Shape, LargestDisplacementBoundsEveryPixel) {
  for (const ShapeParameters& s :
       {affine(0.01, -0.02, 0, 0), affine(0.3, -0.2, 2, 0.1), curved(affine(0.1, 0, 1, 0), 0.01)}) {
    double largest = 0;
    for (int y = -16; y <= 16; ++y)
      for (int x = -16; x <= 16; ++x) largest = std::max(largest, std::hypot(s.u_at(x, y), s.v_at(x, y)));
    EXPECT_GE(largest_displacement(s, 16), largest - 1e-12);
    EXPECT_LE(largest_displacement(s, 16), 3 * largest);
  }
}

// ---- peak of a 3x3 neighbourhood ----

std::array<float, 9> quadratic_surface(double x0, double y0, double xx, double xy, double yy) {
  std::array<float, 9> out{};
  for (int y = -1; y <= 1; ++y)
    for (int x = -1; x <= 1; ++x)
      out[(y + 1) * 3 + x + 1] = static_cast<float>(0.9 + xx * (x - x0) * (x - x0) +
                                                    xy * (x - x0) * (y - y0) + yy * (y - y0) * (y - y0));
  return out;
}

TEST(PeakOffset, IsExactForQuadratics) {
  for (auto [x, y] : {std::pair{0.0, 0.0}, {0.3, -0.45}, {-0.5, 0.5}, {0.11, 0.9}}) {
    const auto peak = peak_offset(quadratic_surface(x, y, -0.1, 0.05, -0.2));
    EXPECT_NEAR(peak[0], x, 1e-5);
    EXPECT_NEAR(peak[1], y, 1e-5);
  }
}

TEST(PeakOffset, StaysWithinOnePixel) {
  const auto peak = peak_offset(quadratic_surface(4, -3, -0.1, 0, -0.2));
  EXPECT_EQ(peak[0], 1);
  EXPECT_EQ(peak[1], -1);
}

TEST(PeakOffset, IsZeroWhereThereIsNoMaximum) {
  const std::array<double, 2> zero{0, 0};
  EXPECT_EQ(peak_offset(quadratic_surface(0.3, 0.2, 0.1, 0, 0.2)), zero);   // minimum
  EXPECT_EQ(peak_offset(quadratic_surface(0.3, 0.2, -0.1, 0, 0.2)), zero);  // saddle
  EXPECT_EQ(peak_offset(quadratic_surface(0, 0, 0, 0, 0)), zero);           // flat
  EXPECT_EQ(peak_offset(quadratic_surface(0.3, 0.2, -0.1, 0, 0)), zero);    // ridge
}

// ---- refinement ----

/// A reference image whose pixel X shows what the current image shows at X + displacement(X): exact truth
/// without any inverse.
template <typename Displacement>
struct Pair {
  Image reference, current;
  Displacement displacement;
};

template <typename Displacement>
Pair<Displacement> speckle_pair(int width, int height, double sigma, unsigned seed,
                                const Displacement& displacement) {
  const Speckle speckle(width, height, sigma, seed);
  const auto moved = [&](int x, int y) {
    const auto [u, v] = displacement(x, y);
    return grey_of(speckle(x + u, y + v));
  };
  return {image_of(width, height, moved),
          image_of(width, height, [&](int x, int y) { return grey_of(speckle(x, y)); }), displacement};
}

auto translation(double u, double v) {
  return [=](double, double) { return std::array{u, v}; };
}
/// Displacement of a shape function about (cx, cy).
auto shape_field(const ShapeParameters& s, double cx, double cy) {
  return [=](double x, double y) { return std::array{s.u_at(x - cx, y - cy), s.v_at(x - cx, y - cy)}; };
}
/// The parameters of that shape function about another centre.
ShapeParameters moved_centre(const ShapeParameters& s, double dx, double dy) {
  ShapeParameters out = s;
  out.u = s.u_at(dx, dy);
  out.v = s.v_at(dx, dy);
  out.ux = s.ux + s.uxx * dx + s.uxy * dy;
  out.uy = s.uy + s.uxy * dx + s.uyy * dy;
  out.vx = s.vx + s.vxx * dx + s.vxy * dy;
  out.vy = s.vy + s.vxy * dx + s.vyy * dy;
  return out;
}

struct Points {
  std::vector<int> x, y;
};
Points grid_points(int width, int height, int margin, int step) {
  Points out;
  for (int y = margin; y < height - margin; y += step)
    for (int x = margin; x < width - margin; x += step) {
      out.x.push_back(x);
      out.y.push_back(y);
    }
  return out;
}

Refiner refiner_of(const RefineOptions& options, ImageView reference, ImageView current, const Points& points,
                   ImageView roi = {}, int threads = 1) {
  Refiner refiner(options, "cpu", threads);
  refiner.set_reference(reference, points.x, points.y, roi);
  refiner.set_current(current);
  return refiner;
}

RefinedPoint refine_one(const RefineOptions& options, ImageView reference, ImageView current, int x, int y,
                        const ShapeParameters& start = {}, ImageView roi = {}) {
  return refiner_of(options, reference, current, {{x}, {y}}, roi).refine(0, start);
}

ShapeParameters start_at(double u, double v) {
  ShapeParameters s;
  s.u = u;
  s.v = v;
  return s;
}

RefineOptions options_of(int subset, int order, Interpolation interpolation = Interpolation::cubic) {
  RefineOptions options;
  options.subset = subset;
  options.order = order;
  options.interpolation = interpolation;
  return options;
}

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
        continue;  // 12 parameters from 49 pixels: a start within 0.5 px is not enough
      if (order == 0 && subset > 65) continue;  // a constant does not describe the field
      const RefinedPoint p =
          refine_one(options_of(subset, order), pair.reference, pair.current, kSize / 2, kSize / 2);
      ASSERT_EQ(p.status, Status::ok) << subset << ", order " << order;
      EXPECT_NEAR(p.shape.u, 0.4, order == 0 ? 0.03 : 0.01) << subset << ", order " << order;
      EXPECT_NEAR(p.shape.v, -0.3, order == 0 ? 0.03 : 0.01) << subset << ", order " << order;
    }
}

double naive_zncc(const Image& reference, const NaiveSpline& current, int x, int y, int radius,
                  const ShapeParameters& s) {
  double n = 0, f1 = 0, g1 = 0, ff = 0, gg = 0, fg = 0;
  for (int j = -radius; j <= radius; ++j)
    for (int i = -radius; i <= radius; ++i) {
      const double f = reference.row<float>(y + j)[x + i];
      const double g = current.at(x + i + s.u_at(i, j), y + j + s.v_at(i, j));
      n += 1, f1 += f, g1 += g, ff += f * f, gg += g * g, fg += f * g;
    }
  return (fg - f1 * g1 / n) / std::sqrt((ff - f1 * f1 / n) * (gg - g1 * g1 / n));
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

// ---- cut subsets ----

TEST(Refiner, SubsetsCutByTheBorderUseThePixelsInside) {
  constexpr int kWidth = 130, kHeight = 110;
  // Moves towards the inside everywhere, so that the whole of every cut subset stays in the image.
  const ShapeParameters shrink = affine(0, 0, 0, 0);
  ShapeParameters field = shrink;
  field.ux = field.vy = -0.02;
  const auto pair = speckle_pair(kWidth, kHeight, 1.7, 10, shape_field(field, kWidth / 2, kHeight / 2));
  const Points points{{0, 0, 129, 129, 5, 65, 65, 3, 126}, {40, 55, 40, 55, 50, 0, 109, 60, 50}};
  const Refiner refiner = refiner_of(options_of(33, 1), pair.reference, pair.current, points);
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    const ShapeParameters truth = moved_centre(field, points.x[i] - kWidth / 2, points.y[i] - kHeight / 2);
    const RefinedPoint p = refiner.refine(i, start_at(std::round(truth.u), std::round(truth.v)));
    ASSERT_EQ(p.status, Status::ok) << points.x[i] << ", " << points.y[i];
    EXPECT_NEAR(p.shape.u, truth.u, 0.01) << points.x[i] << ", " << points.y[i];
    EXPECT_NEAR(p.shape.v, truth.v, 0.01) << points.x[i] << ", " << points.y[i];
  }
}

TEST(Refiner, LessThanHalfInsideTheReferenceIsOutOfImage) {
  const auto pair = speckle_pair(100, 100, 1.7, 10, translation(0, 0));
  const Points points{{0, 0, 99, 50, -1, 100, -40}, {0, 4, 99, 50, 50, 50, 50}};
  const Refiner refiner = refiner_of(options_of(33, 1), pair.reference, pair.current, points);
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    const Status expected = points.x[i] == 50 && points.y[i] == 50 ? Status::ok : Status::out_of_image;
    EXPECT_EQ(refiner.reference_status(i), expected) << points.x[i] << ", " << points.y[i];
    EXPECT_EQ(refiner.refine(i, {}).status, expected) << points.x[i] << ", " << points.y[i];
  }
}

TEST(Refiner, SubsetsCutByTheRoiUseThePixelsInside) {
  constexpr int kSize = 120;
  // Left of x = 60 the material moves by 0.3 px, right of it by 2.3 px.
  const auto pair = speckle_pair(kSize, kSize, 1.7, 12, [](double x, double) {
    return std::array{x < 60 ? 0.3 : 2.3, 0.1};
  });
  Image roi({kSize, kSize}, ScalarType::u8);
  for (int y = 0; y < kSize; ++y) std::fill_n(roi.row<std::uint8_t>(y), 60, std::uint8_t{1});
  const RefinedPoint cut = refine_one(options_of(33, 0), pair.reference, pair.current, 55, 60, {}, roi);
  ASSERT_EQ(cut.status, Status::ok);
  EXPECT_NEAR(cut.shape.u, 0.3, 0.01);
  EXPECT_NEAR(cut.shape.v, 0.1, 0.01);
  EXPECT_GT(cut.zncc, 0.99f);
  const RefinedPoint whole = refine_one(options_of(33, 0), pair.reference, pair.current, 55, 60);
  EXPECT_LT(whole.zncc, 0.95f);
}

TEST(Refiner, OnlyThePixelsInsideTheRoiMustStayInTheImage) {
  constexpr int kSize = 120;
  const auto pair = speckle_pair(kSize, kSize, 1.7, 12, translation(15.3, 0));
  const auto roi_up_to = [](int columns) {
    Image roi({kSize, kSize}, ScalarType::u8);
    for (int y = 0; y < kSize; ++y) std::fill_n(roi.row<std::uint8_t>(y), columns, std::uint8_t{1});
    return roi;
  };
  // Columns 79 to 111, of which the ROI has those to 99; displaced, they would end at 126.
  const auto status = [&](const Image& roi) {
    return refine_one(options_of(33, 0), pair.reference, pair.current, 95, 60, {.u = 15}, roi).status;
  };
  EXPECT_EQ(status(roi_up_to(100)), Status::ok);
  EXPECT_EQ(status(roi_up_to(kSize)), Status::out_of_image);
}

TEST(Refiner, LessThanHalfInsideTheRoiIsMasked) {
  const auto pair = speckle_pair(100, 100, 1.7, 12, translation(0.3, 0));
  Image roi({100, 100}, ScalarType::u8);
  for (int y = 0; y < 100; ++y) std::fill_n(roi.row<std::uint8_t>(y), 50, std::uint8_t{255});
  const Points points{{49, 50, 51, 90}, {50, 50, 50, 50}};  // 17, 16, 15 and 0 of 33 columns
  const Refiner refiner = refiner_of(options_of(33, 1), pair.reference, pair.current, points, roi);
  const Status expected[] = {Status::ok, Status::masked, Status::masked, Status::masked};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(refiner.reference_status(i), expected[i]) << i;
    EXPECT_EQ(refiner.refine(i, {}).status, expected[i]) << i;
  }
}

TEST(Refiner, AWholeRoiChangesNothing) {
  const auto pair = speckle_pair(100, 100, 1.7, 12, translation(0.3, 0.2));
  Image roi({100, 100}, ScalarType::u8);
  for (int y = 0; y < 100; ++y) std::fill_n(roi.row<std::uint8_t>(y), 100, std::uint8_t{7});
  const RefinedPoint with = refine_one(options_of(33, 1), pair.reference, pair.current, 50, 50, {}, roi);
  const RefinedPoint without = refine_one(options_of(33, 1), pair.reference, pair.current, 50, 50);
  EXPECT_EQ(with.shape.u, without.shape.u);
  EXPECT_EQ(with.zncc, without.zncc);
}

// ---- bad data ends as a status ----

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

TEST(Refiner, RunsOutOfIterationsHonestly) {
  const auto pair = speckle_pair(100, 100, 1.7, 17, translation(0.5, 0.5));
  RefineOptions options = options_of(33, 1);
  options.max_iterations = 1;
  const RefinedPoint p = refine_one(options, pair.reference, pair.current, 50, 50);
  EXPECT_EQ(p.status, Status::not_converged);
  EXPECT_EQ(p.iterations, 1);
  options.tolerance = 2e-3;  // ten times as much will do in the last iteration
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

/// Lanes of a vector past the subset's own columns may point anywhere: they must neither be read nor count.
TEST(Refiner, TurnedSubsetsAtTheEdgeUseTheirOwnPixelsOnly) {
  constexpr int kSize = 41;
  const auto pair = speckle_pair(kSize, kSize, 1.7, 18, translation(0, 0));
  const NaiveSpline spline(pair.current, Interpolation::cubic);
  const Points points{{10, 15, 20, 30}, {15, 20, 20, 30}};
  const Refiner refiner = refiner_of(options_of(21, 1), pair.reference, pair.current, points);
  int measured = 0;
  for (int i = 0; i < 4; ++i)
    for (int angle = 0; angle < 360; angle += 15) {
      const RefinedPoint p = refiner.refine(i, affine(0, 0, angle, 0));
      if (p.status != Status::ok) continue;
      EXPECT_NEAR(p.zncc, naive_zncc(pair.reference, spline, points.x[i], points.y[i], 10, p.shape), 1e-3);
      ++measured;
    }
  EXPECT_GE(measured, 4);
}

// ---- uncertainty ----

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

// ---- the object ----

/// Faint speckle in noise, on a bright ground: noise takes most of the Gauss-Newton matrix, and every target
/// rounds in its own way.
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
