#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <dic/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/shape.hpp>
#include <random>
#include <vector>

#include "refine/current_sums.hpp"
#include "refine/image.hpp"
#include "refine/reference_sums.hpp"
#include "refine/weight_table.hpp"
#include "support/refine_support.hpp"
#include "support/speckle.hpp"

// Tests the vectorized sums over a subset against loops over its pixels, on every SIMD target.
namespace dic {
namespace {

using namespace refine;
using namespace test;

struct SubsetCase {
  SubsetRect rect;
  bool masked, windowed;
};
/// Odd and cut subsets with sizes around the widths of SIMD vectors, with and without excluded pixels and a
/// window.
std::vector<SubsetCase> subset_cases() {
  std::vector<SubsetCase> cases;
  for (const bool windowed : {false, true})
    for (const bool masked : {false, true}) {
      for (int r : {3, 4, 7, 8, 10, 15, 16, 25}) cases.push_back({{-r, r, -r, r}, masked, windowed});
      cases.push_back({{-2, 10, -10, 4}, masked, windowed});
      cases.push_back({{-10, 0, 0, 10}, masked, windowed});
    }
  return cases;
}

/// A reference and a current image with everything that the sums need, and the naive spline of the current
/// image.
class Sums : public testing::TestWithParam<Interpolation> {
 protected:
  static constexpr int kSize = 120, kX = 57, kY = 61, kSubset = 51;

  Sums()
      : pool_(1),
        reference_image_(random_image(kSize, kSize, 1)),
        current_image_(random_image(kSize, kSize, 2)),
        spline_(current_image_, GetParam()),
        reference_(to_float(reference_image_, pool_)),
        mask_(kSize, kSize, pool_),
        window_(window_table(SubsetWeights::gaussian, kSubset, 1)) {
    spline_gradient(reference_, GetParam(), dx_, dy_, pool_);
    spline_coefficients(current_image_, GetParam(), coefficients_, pool_);
    std::mt19937 random(5);
    for (int y = 0; y < kSize; ++y)
      for (int x = 0; x < kSize; ++x) *mask_.at(x, y) = random() % 4 ? 1.0f : 0.0f;
  }

  ReferencePatch patch(const SubsetCase& c) const {
    ReferencePatch out;
    out.grey = reference_.at(kX, kY);
    out.dx = dx_.at(kX, kY);
    out.dy = dy_.at(kX, kY);
    out.stride = reference_.stride();
    if (c.masked) out.mask = {mask_.at(kX, kY), mask_.stride()};
    if (c.windowed) out.window = window_.view();
    out.rect = c.rect;
    return out;
  }
  static double weight(const SubsetCase& c, int i, int j) {
    return c.windowed ? std::exp(-0.5 * (i * i + j * j) / std::pow(kSubset / 4.0, 2)) : 1;
  }
  /// Calls body(i, j) for the pixels that count.
  template <typename Body>
  void each_pixel(const SubsetCase& c, const Body& body) const {
    for (int j = c.rect.top; j <= c.rect.bottom; ++j)
      for (int i = c.rect.left; i <= c.rect.right; ++i)
        if (!c.masked || *mask_.at(kX + i, kY + j) != 0) body(i, j);
  }

  /// Checks that `sum` equals the sum of weight a(i, j) i^p j^q up to float rounding of its terms.
  template <typename Term>
  void expect_moment(const SubsetCase& c, double sum, int p, int q, const Term& term) const {
    double expected = 0, square = 0;
    each_pixel(c, [&](int i, int j) {
      const double value = weight(c, i, j) * term(i, j) * std::pow(i, p) * std::pow(j, q);
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
    expect_sums(c, order, reference_sums(patch(c), order));
  }

  void expect_sums(const SubsetCase& c, int order, const ReferenceSubsetSums& sums) const {
    double count = 0, total = 0;
    each_pixel(c, [&](int i, int j) {
      count += weight(c, i, j);
      total += weight(c, i, j) * *reference_.at(kX + i, kY + j);
    });
    EXPECT_NEAR(sums.count, count, c.windowed ? 1e-6 * count : 0);
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

  /// Subsets that share the columns of one patch have the same sums, to the last bit, as each one alone.
  void check_shared_columns(bool masked, int order) const {
    const SubsetRect all{-30, 50, -12, 9};
    ColumnSums columns;
    columns.sum(patch({all, masked, false}), order);
    for (const int centre : {-18, -13, 0, 1, 5, 33, 45}) {
      const int left = centre - 12, right = std::min(centre + 12, all.right);
      ReferencePatch own = patch({{left - centre, right - centre, all.top, all.bottom}, masked, false});
      for (const float** at : {&own.grey, &own.dx, &own.dy}) *at += centre;
      if (masked) own.mask.centre += centre;
      const ReferenceSubsetSums shared = columns.over({left, right, centre}),
                                alone = reference_sums(own, order);
      EXPECT_EQ(std::memcmp(&shared, &alone, sizeof shared), 0) << "centre " << centre;
    }
  }

  void check_reference_about(const SubsetCase& c) const {
    const ReferenceSubsetSums sums = reference_sums_about(100, patch(c), 1);
    const auto f = [&](int i, int j) { return *reference_.at(kX + i, kY + j) - 100.0; };
    EXPECT_EQ(sums.mean, 100);
    expect_moment(c, sums.grey, 0, 0, f);
    expect_moment(c, sums.grey_grey, 0, 0, [&](int i, int j) { return f(i, j) * f(i, j); });
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

  core::ThreadPool pool_;
  Image reference_image_, current_image_;
  NaiveSpline spline_;
  PaddedImage reference_, dx_, dy_, mask_, coefficients_;
  WeightTable window_;
};

TEST_P(Sums, ReferenceSumsEqualNaiveSums) {
  on_every_simd_target([&] {
    for (const SubsetCase& c : subset_cases())
      for (int order : {0, 1, 2}) check_reference(c, order);
  });
}

TEST_P(Sums, NeighboursShareColumns) {
  on_every_simd_target([&] {
    for (const bool masked : {false, true})
      for (int order : {0, 1, 2}) check_shared_columns(masked, order);
  });
}

TEST_P(Sums, SumsAboutAGivenGreyValueEqualNaiveSums) {
  on_every_simd_target([&] {
    for (const SubsetCase& c : subset_cases()) check_reference_about(c);
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

}  // namespace
}  // namespace dic
