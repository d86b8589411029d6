#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <dic/error.hpp>
#include <dic/fields.hpp>
#include <functional>
#include <numbers>
#include <random>
#include <set>

#include "support/strain_truth.hpp"

namespace {

using dic::Field;
using dic::Grid;
using dic::Status;
using dic::StrainField;
using dic::StrainMeasure;
using dic::test::full_grid;
using dic::test::naive_gradient;
using dic::test::strain_tensor;

using Displacement = std::function<std::array<double, 2>(double x, double y)>;

Field measure(const Grid& grid, const Displacement& displacement) {
  Field field(grid);
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const auto k = static_cast<std::size_t>(j) * grid.nx + i;
      const auto [u, v] = displacement(grid.x(i), grid.y(j));
      field.u[k] = u, field.v[k] = v, field.status[k] = Status::ok;
    }
  return field;
}

void lose(Field& field, const Grid& grid, int i, int j) {
  const auto k = static_cast<std::size_t>(j) * grid.nx + i;
  field.u[k] = field.v[k] = std::nan("");
  field.status[k] = Status::low_correlation;
}

Displacement affine(const Eigen::Matrix2d& gradient) {
  return [gradient](double x, double y) {
    const Eigen::Vector2d d = gradient * Eigen::Vector2d(x - 60, y - 40) + Eigen::Vector2d(3.25, -1.5);
    return std::array{d.x(), d.y()};
  };
}

Eigen::Matrix2d rotation(double degrees) {
  return Eigen::Rotation2Dd(degrees * std::numbers::pi / 180).toRotationMatrix();
}

constexpr std::array kMeasures = {StrainMeasure::green_lagrange, StrainMeasure::engineering,
                                  StrainMeasure::hencky, StrainMeasure::almansi};

std::array<double, 4> as_array(const Eigen::Matrix2d& g) { return {g(0, 0), g(0, 1), g(1, 0), g(1, 1)}; }

void expect_strain(const StrainField& strain, std::size_t k, const Eigen::Matrix2d& expected,
                   double tolerance) {
  EXPECT_NEAR(strain.exx[k], expected(0, 0), tolerance) << "node " << k;
  EXPECT_NEAR(strain.eyy[k], expected(1, 1), tolerance) << "node " << k;
  EXPECT_NEAR(strain.exy[k], expected(0, 1), tolerance) << "node " << k;
}

TEST(Status, NamesAreDistinctAndAsDocumented) {
  EXPECT_EQ(to_string(Status::ok), "ok");
  EXPECT_EQ(to_string(Status::out_of_image), "out_of_image");
  EXPECT_EQ(to_string(Status::outlier), "outlier");
  std::set<std::string_view> names;
  for (int s = 0; s < dic::kStatusCount; ++s) names.insert(to_string(static_cast<Status>(s)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(dic::kStatusCount));
}

TEST(Field, CountsOnlyNodesInsideTheRoi) {
  Grid grid = full_grid(4, 3);
  grid.inside[0] = grid.inside[5] = 0;
  EXPECT_EQ(grid.nodes(), 12);
  EXPECT_EQ(grid.points(), 10);
  Field field = measure(grid, affine(Eigen::Matrix2d::Zero()));
  EXPECT_EQ(field.grid(), grid);
  field.status[1] = field.status[2] = Status::flat;
  field.status[3] = Status::outlier;
  const auto counts = field.counts();
  EXPECT_EQ(counts[static_cast<int>(Status::ok)], 7);
  EXPECT_EQ(counts[static_cast<int>(Status::flat)], 2);
  EXPECT_EQ(counts[static_cast<int>(Status::outlier)], 1);
  EXPECT_EQ(counts[static_cast<int>(Status::masked)], 0);
}

TEST(Field, StartsMissing) {
  const Field field(full_grid(3, 1));
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(field.status[k], Status::masked);
    EXPECT_TRUE(std::isnan(field.u[k]) && std::isnan(field.v[k]) && std::isnan(field.zncc[k]));
    EXPECT_TRUE(std::isnan(field.sigma_u[k]) && std::isnan(field.sigma_v[k]));
  }
}

TEST(Field, CarriesItsGrid) {
  const Field none;
  EXPECT_EQ(none.grid().nodes(), 0);
  EXPECT_TRUE(none.status.empty());
  Field field(full_grid(4, 3));
  const Field copy = field, moved = std::move(field);
  EXPECT_EQ(copy.grid(), full_grid(4, 3));
  EXPECT_EQ(&copy.grid(), &moved.grid()) << "copies share it";
  EXPECT_EQ(field.grid().nodes(), 0);  // NOLINT: what moving leaves
  const Field waiting = Field::without_arrays(copy.shared_grid());
  EXPECT_EQ(&waiting.grid(), &copy.grid());
  EXPECT_TRUE(waiting.u.empty() && waiting.status.empty());
}

TEST(StrainMeasures, FollowTheirDefinitions) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(-0.4, 0.4);
  for (int trial = 0; trial < 200; ++trial) {
    Eigen::Matrix2d gradient;
    gradient << any(random), any(random), any(random), any(random);
    for (const StrainMeasure measure : kMeasures) {
      const auto strain = strain_from_gradient(as_array(gradient), measure);
      const Eigen::Matrix2d expected = strain_tensor(gradient, measure);
      EXPECT_NEAR(strain[0], expected(0, 0), 1e-12) << to_string(measure);
      EXPECT_NEAR(strain[1], expected(1, 1), 1e-12) << to_string(measure);
      EXPECT_NEAR(strain[2], expected(0, 1), 1e-12) << to_string(measure);
    }
  }
}

TEST(StrainMeasures, RotationIsNoStrainExceptForTheLinearMeasure) {
  for (const double degrees : {0.0, 1.0, 30.0, 90.0, 179.0}) {
    const Eigen::Matrix2d gradient = rotation(degrees) - Eigen::Matrix2d::Identity();
    for (const StrainMeasure measure :
         {StrainMeasure::green_lagrange, StrainMeasure::hencky, StrainMeasure::almansi})
      for (const double component : strain_from_gradient(as_array(gradient), measure))
        EXPECT_NEAR(component, 0, 1e-14) << to_string(measure) << " at " << degrees;
    const auto linear = strain_from_gradient(as_array(gradient), StrainMeasure::engineering);
    EXPECT_NEAR(linear[0], std::cos(degrees * std::numbers::pi / 180) - 1, 1e-14);
  }
}

TEST(StrainMeasures, KnownStretch) {
  const std::array<double, 4> stretch = {0.2, 0, 0, 0};
  EXPECT_NEAR(strain_from_gradient(stretch, StrainMeasure::green_lagrange)[0], 0.22, 1e-15);
  EXPECT_NEAR(strain_from_gradient(stretch, StrainMeasure::hencky)[0], std::log(1.2), 1e-15);
  EXPECT_NEAR(strain_from_gradient(stretch, StrainMeasure::almansi)[0], (1 - 1 / 1.44) / 2, 1e-15);
  EXPECT_NEAR(strain_from_gradient(stretch, StrainMeasure::engineering)[0], 0.2, 1e-15);
  EXPECT_NEAR(strain_from_gradient({0, 0.1, 0, 0}, StrainMeasure::engineering)[2], 0.05, 1e-15);
}

TEST(StrainMeasures, TinyStrainsKeepTheirDigits) {
  const std::array<double, 4> tiny = {1e-9, 0, 0, -2e-9};
  for (const StrainMeasure measure : kMeasures) {
    const auto strain = strain_from_gradient(tiny, measure);
    EXPECT_NEAR(strain[0], 1e-9, 1e-15) << to_string(measure);
    EXPECT_NEAR(strain[1], -2e-9, 1e-15) << to_string(measure);
  }
}

TEST(StrainMeasures, FoldedMaterialHasNone) {
  const std::array<double, 4> mirrored = {-2, 0, 0, 0}, flattened = {-1, 0, 0, 0};
  for (const auto& gradient : {mirrored, flattened})
    for (const StrainMeasure measure : {StrainMeasure::hencky, StrainMeasure::almansi})
      EXPECT_TRUE(std::isnan(strain_from_gradient(gradient, measure)[0])) << to_string(measure);
}

TEST(Strain, AffineFieldGivesItsStrainWhereverHalfOfTheWindowIsThere) {
  const Grid grid = full_grid(17, 13);
  Eigen::Matrix2d gradient;
  gradient << 0.02, -0.013, 0.007, -0.011;
  const Field field = measure(grid, affine(gradient));
  for (const StrainMeasure measure : kMeasures)
    for (const int window : {3, 5, 7}) {
      const StrainField strain = compute_strain(field, {window, measure}, 2);
      const Eigen::Matrix2d expected = strain_tensor(gradient, measure);
      const Eigen::SelfAdjointEigenSolver<Eigen::Matrix2d> principal(expected);
      for (int j = 0; j < grid.ny; ++j)
        for (int i = 0; i < grid.nx; ++i) {
          const int half = window / 2;
          const int columns = std::min({half, i, grid.nx - 1 - i}) + half + 1;
          const int rows = std::min({half, j, grid.ny - 1 - j}) + half + 1;
          const auto k = static_cast<std::size_t>(j) * grid.nx + i;
          if (2 * columns * rows < window * window) {
            EXPECT_TRUE(std::isnan(strain.exx[k]) && std::isnan(strain.von_mises[k])) << i << "," << j;
            continue;
          }
          expect_strain(strain, k, expected, 1e-8);
          EXPECT_NEAR(strain.e1[k], principal.eigenvalues()(1), 1e-8);
          EXPECT_NEAR(strain.e2[k], principal.eigenvalues()(0), 1e-8);
          EXPECT_NEAR(strain.von_mises[k],
                      std::sqrt(std::pow(expected(0, 0), 2) + std::pow(expected(1, 1), 2) -
                                expected(0, 0) * expected(1, 1) + 3 * std::pow(expected(0, 1), 2)),
                      1e-8);
        }
    }
}

TEST(Strain, MatchesPlainLeastSquaresWithRoiHolesAndMissingPoints) {
  for (const int window : {3, 5, 9, 17}) {
    std::mt19937 random(window);
    std::uniform_real_distribution<double> any(-1, 1);
    Grid grid = full_grid(40, 31, 7);
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i)
        if (std::hypot(i - 28, j - 12) < 5) grid.inside[static_cast<std::size_t>(j) * grid.nx + i] = 0;
    Field field = measure(grid, [&](double x, double y) {
      return std::array{300 + 0.03 * x + 2 * std::sin(y / 30) + 0.02 * any(random),
                        -120 + 0.0001 * x * y + 0.02 * any(random)};
    });
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < 20; ++i)
        if (any(random) > 0.6) lose(field, grid, i, j);
    const StrainField strain = compute_strain(field, {window, StrainMeasure::green_lagrange}, 3);
    int computed = 0, refused = 0;
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const auto k = static_cast<std::size_t>(j) * grid.nx + i;
        Eigen::Matrix2d gradient;
        if (naive_gradient(grid, field, window, i, j, gradient)) {
          ++computed;
          expect_strain(strain, k, strain_tensor(gradient, StrainMeasure::green_lagrange), 1e-7);
        } else {
          ++refused;
          EXPECT_TRUE(std::isnan(strain.exx[k])) << i << "," << j;
        }
      }
    EXPECT_GT(computed, 400);
    EXPECT_GT(refused, 100);
  }
}

/// The opening of a crack must not show up as strain beside it.
TEST(Strain, CracksOfMissingPointsAreNotBridged) {
  const Grid grid = full_grid(21, 21);
  const auto opening = [](bool beyond) { return beyond ? 4.0 : 0.0; };
  Field straight = measure(grid, [&](double, double y) { return std::array{0.0, opening(y > 30 + 10 * 5)}; });
  Field diagonal = measure(grid, [&](double x, double y) {
    return std::array{opening(x - 20 > y - 30), 0.0};
  });
  for (int i = 0; i < 21; ++i) {
    lose(straight, grid, i, 10);
    lose(diagonal, grid, i, i);
  }
  for (const Field* field : {&straight, &diagonal}) {
    const StrainField strain = compute_strain(*field, {}, 2);
    int computed = 0;
    for (std::size_t k = 0; k < strain.exx.size(); ++k) {
      if (std::isnan(strain.exx[k])) continue;
      ++computed;
      expect_strain(strain, k, Eigen::Matrix2d::Zero(), 1e-9);
    }
    EXPECT_GT(computed, 300);
  }
}

/// Points right beside a closed crack may all be measured.
TEST(Strain, TornNeighboursAreNotBridged) {
  const Grid grid = full_grid(21, 21);
  const auto slip = [](bool beyond) { return beyond ? 0.6 : 0.0; };
  Field straight = measure(grid, [&](double x, double y) {
    return std::array{slip(y > 30 + 10 * 5) + 0.01 * x, 0.02 * y};
  });
  Field diagonal = measure(grid, [&](double x, double y) {
    return std::array{0.01 * x, slip(x - 20 > y - 30) + 0.02 * y};
  });
  Eigen::Matrix2d gradient;
  gradient << 0.01, 0, 0, 0.02;
  const Eigen::Matrix2d expected = strain_tensor(gradient, StrainMeasure::green_lagrange);
  for (Field* field : {&straight, &diagonal}) {
    std::ranges::fill(field->sigma_u, 0.01f);
    std::ranges::fill(field->sigma_v, 0.01f);
    const StrainField strain = compute_strain(*field, {}, 2);
    int computed = 0;
    for (std::size_t k = 0; k < strain.exx.size(); ++k) {
      if (std::isnan(strain.exx[k])) continue;
      ++computed;
      expect_strain(strain, k, expected, 1e-8);
    }
    EXPECT_GT(computed, 250);
  }
}

TEST(Strain, SteepStrainIsNoTear) {
  const Grid grid = full_grid(21, 21);
  Field field = measure(grid, [](double x, double) { return std::array{3 * std::sin(x * M_PI / 60), 0.0}; });
  std::ranges::fill(field.sigma_u, 0.01f);
  std::ranges::fill(field.sigma_v, 0.01f);
  const StrainField strain = compute_strain(field, {}, 2);
  const auto known = std::ranges::count_if(strain.exx, [](float e) { return !std::isnan(e); });
  field.sigma_u = field.sigma_v = Field(grid).sigma_u;  // unknown sigma disables the search for tears
  const StrainField all = compute_strain(field, {}, 2);
  EXPECT_EQ(known, std::ranges::count_if(all.exx, [](float e) { return !std::isnan(e); }));
}

TEST(Strain, OutliersDoNotSpoilTheirNeighbours) {
  const Grid grid = full_grid(11, 11);
  Eigen::Matrix2d gradient;
  gradient << 0.01, 0, 0, 0.02;
  Field field = measure(grid, affine(gradient));
  const std::size_t centre = 5 * 11 + 5;
  field.u[centre] += 8;
  field.status[centre] = Status::outlier;
  const StrainField strain = compute_strain(field, {}, 1);
  const Eigen::Matrix2d expected = strain_tensor(gradient, StrainMeasure::green_lagrange);
  for (int j = 2; j < 9; ++j)
    for (int i = 2; i < 9; ++i) expect_strain(strain, static_cast<std::size_t>(j) * 11 + i, expected, 1e-8);
}

TEST(Strain, NodesWithoutValuesHaveNone) {
  const Grid grid = full_grid(11, 11);
  Field field = measure(grid, affine(Eigen::Matrix2d::Zero()));
  lose(field, grid, 5, 5);
  const StrainField strain = compute_strain(field, {}, 1);
  EXPECT_TRUE(std::isnan(strain.exx[5 * 11 + 5]) && std::isnan(strain.e1[5 * 11 + 5]));
  EXPECT_NEAR(strain.exx[5 * 11 + 6], 0, 1e-9);
}

TEST(Strain, GridsSmallerThanTheWindow) {
  for (const auto& [nx, ny] : {std::pair{1, 1}, {1, 20}, {20, 1}, {3, 2}, {0, 0}}) {
    const Grid grid = full_grid(nx, ny);
    const StrainField strain = compute_strain(measure(grid, affine(Eigen::Matrix2d::Zero())), {7}, 2);
    ASSERT_EQ(strain.exx.size(), grid.inside.size());
    for (const float e : strain.exx) EXPECT_TRUE(std::isnan(e));
  }
}

TEST(Strain, ResultDoesNotDependOnThreads) {
  const Grid grid = full_grid(60, 45);
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.05);
  Field field = measure(grid, [&](double, double) { return std::array{noise(random), noise(random)}; });
  lose(field, grid, 20, 20);
  const StrainField one = compute_strain(field, {}, 1), four = compute_strain(field, {}, 4);
  for (std::size_t k = 0; k < one.exx.size(); ++k)
    EXPECT_TRUE(one.exx[k] == four.exx[k] || (std::isnan(one.exx[k]) && std::isnan(four.exx[k])));
}

TEST(StrainOptions, WindowMustBeOddAndFrom3To127) {
  for (const int window : {3, 5, 127}) EXPECT_TRUE(dic::StrainOptions{window}.validate().empty()) << window;
  for (const int window : {-5, 0, 1, 2, 4, 129})
    EXPECT_EQ(dic::StrainOptions{window}.validate().size(), 1u) << window;
  const Grid grid = full_grid(3, 3);
  EXPECT_THROW(compute_strain(Field(grid), {4}), dic::UsageError);
}

// --- values of nodes ---

TEST(NodeValues, CopiesAreDeepAndMemoryIsTakenOver) {
  const std::shared_ptr<int[]> memory(new int[3]{1, 2, 3});
  dic::NodeValues<int> values(memory, 3);
  dic::NodeValues<int> copy = values;
  EXPECT_EQ(copy, values);
  values[1] = 7;
  EXPECT_EQ(memory[1], 7);
  EXPECT_EQ(copy[1], 2);
  const dic::NodeValues<int> moved = std::move(values);
  EXPECT_EQ(moved.data(), memory.get());
  EXPECT_EQ(memory.use_count(), 2);
  copy = moved;
  EXPECT_EQ(copy[1], 7);
  EXPECT_NE(copy.data(), moved.data());
  EXPECT_TRUE(dic::NodeValues<int>().empty());
}

// --- outliers ---

TEST(Outliers, WrongVectorsAreFoundAnywhereInLargeStrainRotationAndNoise) {
  const Grid grid = full_grid(50, 40);
  const Eigen::Matrix2d gradient =
      rotation(25) * Eigen::Matrix2d{{1.3, 0.05}, {0.05, 0.8}} - Eigen::Matrix2d::Identity();
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.03);
  const auto truth = affine(gradient);
  Field field = measure(grid, [&](double x, double y) {
    const auto [u, v] = truth(x, y);
    return std::array{u + noise(random), v + noise(random)};
  });
  const std::set<std::size_t> wrong = {
      0, 25, 49, 20 * 50, 20 * 50 + 20, 21 * 50 + 21, 30 * 50 + 10, 30 * 50 + 11, 39 * 50 + 49};
  for (const std::size_t k : wrong) field.v[k] += 3;
  const dic::NodeValues<double> before = field.v;
  EXPECT_EQ(mark_outliers(field, {}, 2), static_cast<std::int64_t>(wrong.size()));
  for (std::size_t k = 0; k < field.status.size(); ++k)
    EXPECT_EQ(field.status[k], wrong.contains(k) ? Status::outlier : Status::ok) << k;
  EXPECT_EQ(field.v, before) << "outliers keep their values";
}

TEST(Outliers, MissingNeighboursNeitherHideNorMakeOutliers) {
  const Grid grid = full_grid(60, 60);
  Eigen::Matrix2d gradient;
  gradient << 0.1, 0.2, -0.2, 0.05;
  Field field = measure(grid, affine(gradient));
  std::mt19937 random(5);
  std::uniform_real_distribution<double> any(0, 1);
  const std::size_t wrong = 30 * 60 + 30;
  for (int j = 0; j < 60; ++j)
    for (int i = 0; i < 60; ++i)
      if (any(random) < 0.2 && !(i == 30 && j == 30)) lose(field, grid, i, j);
  field.u[wrong] -= 2;
  EXPECT_EQ(mark_outliers(field, {}, 2), 1);
  EXPECT_EQ(field.status[wrong], Status::outlier);
}

/// On a field without gradients, the test must agree with Westerweel and Scarano's original formula.
TEST(Outliers, ThresholdIsTheNormalizedResidual) {
  const Grid grid = full_grid(3, 3);
  for (const double size : {1.1, 1.3}) {
    Field field = measure(grid, [](double, double) { return std::array{0.0, 0.0}; });
    // Residuals of the neighbours: four of 0, four of 0.2 (two each way); median 0.1.
    for (const std::size_t k : {0u, 8u}) field.u[k] = 0.2;
    for (const std::size_t k : {2u, 6u}) field.u[k] = -0.2;
    field.u[4] = size;  // normalized by 0.1 + 0.1
    mark_outliers(field, {}, 1);
    EXPECT_EQ(field.status[4], size > 1.2 ? Status::outlier : Status::ok) << size;
  }
}

TEST(Outliers, SmallGroupsAndSwitchedOff) {
  const Grid grid = full_grid(2, 1);
  Field pair = measure(grid, [](double x, double) { return std::array{x > 20 ? 50.0 : 0.0, 0.0}; });
  EXPECT_EQ(mark_outliers(pair, {}, 1), 0) << "two points cannot tell which of them is wrong";

  const Grid square = full_grid(5, 5);
  Field field = measure(square, affine(Eigen::Matrix2d::Zero()));
  field.u[12] += 10;
  dic::OutlierOptions off;
  off.enabled = false;
  EXPECT_EQ(mark_outliers(field, off, 1), 0);
  EXPECT_EQ(mark_outliers(field, {}, 1), 1);
}

}  // namespace
