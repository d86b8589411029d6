#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <dic/error.hpp>
#include <dic/global.hpp>
#include <functional>
#include <numbers>
#include <random>

#include "core/parallel.hpp"
#include "global/mesh.hpp"
#include "global/system.hpp"
#include "global/transfer.hpp"
#include "support/strain_truth.hpp"

namespace {

using dic::Field;
using dic::GlobalOptions;
using dic::Grid;
using dic::MeasuredSubsets;
using dic::Status;
using dic::test::full_grid;

using Displacement = std::function<double(double x, double y)>;

Grid grid_of(int nx, int ny, int step) { return full_grid(nx, ny, step); }

/// A field with the given u, v = -u / 2 and a constant sigma.
Field measure(const Grid& grid, const Displacement& displacement, double sigma = 0.01) {
  Field field(grid);
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const auto k = static_cast<std::size_t>(j) * grid.nx + i;
      field.u[k] = displacement(grid.x(i), grid.y(j));
      field.v[k] = -field.u[k] / 2;
      field.sigma_u[k] = field.sigma_v[k] = static_cast<float>(sigma);
      field.status[k] = Status::ok;
    }
  return field;
}

void lose(Field& field, int i, int j) {
  const auto k = static_cast<std::size_t>(j) * field.grid().nx + i;
  field.u[k] = field.v[k] = std::nan("");
  field.status[k] = Status::low_correlation;
}

GlobalOptions at_resolution(double resolution) { return {.enabled = true, .resolution = resolution}; }
constexpr GlobalOptions kAutomatic = {.enabled = true, .resolution = {}};

/// Displacements that subsets measure from white noise of the pixels: the least-squares estimates at their
/// centres, from the definition.
Field noise_field(const Grid& grid, const MeasuredSubsets& subsets, double sigma, unsigned seed) {
  const int radius = subsets.size / 2, width = (grid.nx - 1) * grid.step + subsets.size,
            height = (grid.ny - 1) * grid.step + subsets.size;
  const int terms = subsets.order < 2 ? 3 : 6, pixels = subsets.size * subsets.size;
  Eigen::MatrixXd basis(pixels, terms);
  for (int p = 0; p < pixels; ++p) {
    const double x = p % subsets.size - radius, y = p / subsets.size - radius;
    const std::array<double, 6> values = {1, x, y, x * x, x * y, y * y};
    for (int k = 0; k < terms; ++k) basis(p, k) = values[static_cast<std::size_t>(k)];
  }
  const Eigen::VectorXd weights =
      basis * (basis.transpose() * basis).ldlt().solve(Eigen::VectorXd::Unit(terms, 0));
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Field field = measure(
      grid, [](double, double) { return 0.0; }, sigma);
  for (auto* values : {&field.u, &field.v}) {
    const Eigen::MatrixXd noise =
        Eigen::MatrixXd::NullaryExpr(width, height, [&] { return normal(random); }) * sigma / weights.norm();
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const Eigen::MatrixXd subset = noise.block(i * grid.step, j * grid.step, subsets.size, subsets.size);
        (*values)[static_cast<std::size_t>(j) * grid.nx + i] = subset.reshaped().dot(weights);
      }
  }
  return field;
}

/// Root mean square over the nodes at least `margin` nodes from the edges.
template <typename T>
double rms(const Grid& grid, const dic::NodeValues<T>& values, int margin) {
  double sum = 0;
  int count = 0;
  for (int j = margin; j < grid.ny - margin; ++j)
    for (int i = margin; i < grid.nx - margin; ++i, ++count)
      sum += std::pow(values[static_cast<std::size_t>(j) * grid.nx + i], 2);
  return std::sqrt(sum / count);
}

TEST(GlobalStep, LeavesAnAffineFieldAsItIs) {
  const Grid grid = grid_of(30, 25, 5);
  const auto plane = [](double x, double y) { return 3 + 0.02 * x - 0.01 * y; };
  for (const GlobalOptions& options : {at_resolution(60), kAutomatic}) {
    Field field = measure(grid, plane);
    for (int j = 8; j < 14; ++j) lose(field, 12, j), lose(field, 13, j);
    dic::global_step(field, {.size = 21, .order = 1}, options);
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const auto k = static_cast<std::size_t>(j) * grid.nx + i;
        if (field.status[k] == Status::ok) {
          ASSERT_NEAR(field.u[k], plane(grid.x(i), grid.y(j)), 1e-8) << i << ", " << j;
          ASSERT_NEAR(field.v[k], -plane(grid.x(i), grid.y(j)) / 2, 1e-8) << i << ", " << j;
          ASSERT_GT(field.sigma_u[k], 0);
        } else {
          ASSERT_TRUE(std::isnan(field.u[k]));
        }
      }
  }
}

TEST(GlobalStep, SystemIsThatOfTheElements) {
  // Solves the least-squares problem of the header densely, on a small mesh with a hole.
  const Grid grid = grid_of(7, 6, 4);
  Field field = measure(grid, [](double x, double y) { return std::sin(x * 0.3 + y * y * 0.01); });
  lose(field, 3, 2);
  const dic::global::Mesh mesh(field);
  const double penalty = 2.5, factor = 6;
  const auto row = [&](int i, int j) {
    return i < 0 || j < 0 || i >= grid.nx || j >= grid.ny ? -1 : mesh.row_of[j * grid.nx + i];
  };
  const Eigen::Index n = mesh.size();
  std::vector<Eigen::VectorXd> differences;
  const auto add = [&](std::initializer_list<std::pair<Eigen::Index, double>> terms) {
    Eigen::VectorXd difference = Eigen::VectorXd::Zero(n);
    for (const auto& [at, value] : terms) {
      if (at < 0) return;
      difference[at] += value;
    }
    differences.push_back(difference);
  };
  Eigen::MatrixXd mean = Eigen::MatrixXd::Identity(n, n);
  Eigen::VectorXd measured(n), weights(n);
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const Eigen::Index at = row(i, j);
      if (at >= 0) measured[at] = field.u[j * grid.nx + i], weights[at] = 1 + 0.1 * i;
      add({{row(i - 1, j), 1}, {at, -2}, {row(i + 1, j), 1}});
      add({{row(i, j - 1), 1}, {at, -2}, {row(i, j + 1), 1}});
      for (int twice = 0; twice < 2; ++twice)
        add({{at, 1}, {row(i + 1, j), -1}, {row(i, j + 1), -1}, {row(i + 1, j + 1), 1}});
      for (const auto& [a, b] : {std::pair{row(i - 1, j), row(i + 1, j)}, {row(i, j - 1), row(i, j + 1)}})
        if (at >= 0 && a >= 0 && b >= 0) {
          mean(at, a) += factor / 16, mean(at, b) += factor / 16;
          mean(at, at) -= 2 * factor / 16;
        }
    }
  Eigen::MatrixXd matrix = mean.transpose() * weights.asDiagonal() * mean;
  for (const Eigen::VectorXd& d : differences) matrix += penalty * d * d.transpose();
  Eigen::VectorXd expected, multiplier = Eigen::VectorXd::Zero(n);
  for (int alternation = 0; alternation < dic::global::kAlternations; ++alternation) {
    expected = matrix.ldlt().solve(mean.transpose() * weights.asDiagonal() * (measured + multiplier));
    multiplier += measured - mean * expected;
  }
  dic::global::System system(mesh, mesh.subset_mean(factor), weights);
  system.set_penalty(penalty);
  dic::core::ThreadPool pool(1);
  EXPECT_LT((system.alternate(Eigen::MatrixXd(measured), pool) - expected).norm(), 1e-9);
}

TEST(GlobalStep, KeepsNineTenthsOfItsResolution) {
  const Grid grid = grid_of(90, 24, 5);
  const MeasuredSubsets subsets{.size = 21, .order = 1};
  const dic::global::Transfer transfer(subsets, grid.step);
  for (const double period : {40.0, 60.0, 90.0}) {
    const double left = transfer.of_subset(period);
    const auto wave = [&](double x, double) { return left * std::cos(2 * std::numbers::pi * x / period); };
    Field field = measure(grid, wave);
    dic::global_step(field, subsets, at_resolution(60));
    double product = 0, square = 0;
    for (int i = 20; i < 70; ++i) {
      const double expected = std::cos(2 * std::numbers::pi * grid.x(i) / period);
      product += field.u[static_cast<std::size_t>(12) * grid.nx + i] * expected;
      square += expected * expected;
    }
    const double share = transfer.of_global(transfer.penalty_of(60), period);
    EXPECT_NEAR(product / square, share, 0.02) << period;
    if (period == 60) {
      EXPECT_NEAR(share, 0.9, 1e-9);
    }
  }
}

TEST(GlobalStep, SubsetsMeasureTheirMean) {
  // Mean over the pixels, from the definition.
  const double period = 50;
  double mean = 0;
  for (int i = -10; i <= 10; ++i) mean += std::cos(2 * std::numbers::pi * i / period) / 21;
  EXPECT_NEAR(dic::global::Transfer({.size = 21, .order = 1}, 5).of_subset(period), mean, 1e-12);
  EXPECT_GT(dic::global::Transfer({.size = 21, .order = 2}, 5).of_subset(period), 0.98);
}

TEST(GlobalStep, FitsNothingAcrossAGap) {
  const Grid grid = grid_of(41, 30, 5);
  Field field = measure(grid, [](double x, double) { return x < 120 ? 0.0 : 3.0; });
  for (int j = 0; j < grid.ny; ++j) lose(field, 20, j);
  for (int j = 0; j < 6; ++j) lose(field, 2, j);  // an island: two columns, not bent but twisted
  for (int i = 0; i < 3; ++i) lose(field, i, 6);
  lose(field, 1, 0), lose(field, 0, 1);  // and a point of its own
  field.u[0] = 77;
  dic::global_step(field, {.size = 21, .order = 1}, at_resolution(80));
  EXPECT_EQ(field.u[0], 77);
  EXPECT_FLOAT_EQ(field.sigma_u[0], 0.01f);
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const auto k = static_cast<std::size_t>(j) * grid.nx + i;
      if (k != 0 && field.status[k] == Status::ok) {
        ASSERT_NEAR(field.u[k], i < 20 ? 0 : 3, 1e-8) << i << ", " << j;
      }
    }
}

TEST(GlobalStep, OutliersTakeNoPart) {
  const Grid grid = grid_of(20, 20, 5);
  Field field = measure(grid, [](double, double) { return 1.0; });
  field.u[210] = 9, field.status[210] = Status::outlier;
  dic::global_step(field, {.size = 21, .order = 1}, at_resolution(60));
  EXPECT_EQ(field.u[210], 9);
  for (std::size_t k = 0; k < field.u.size(); ++k)
    if (k != 210) {
      ASSERT_NEAR(field.u[k], 1, 1e-9) << k;
    }
}

TEST(GlobalStep, PredictsWhatIsLeftOfTheNoise) {
  struct Case {
    MeasuredSubsets subsets;
    int step;
    double resolution, most;
  };
  for (const Case& c : {Case{{21, 1}, 5, 60, 0.8}, Case{{21, 1}, 5, 120, 0.5}, Case{{15, 1}, 10, 70, 0.7},
                        Case{{21, 2}, 4, 60, 0.5}, Case{{33, 0}, 8, 90, 0.9}}) {
    double observed = 0, predicted = 0, at_edge = 0, predicted_at_edge = 0;
    constexpr int draws = 3;
    for (unsigned seed = 1; seed <= draws; ++seed) {
      Field field = noise_field(grid_of(60, 60, c.step), c.subsets, 0.01, seed);
      dic::global_step(field, c.subsets, at_resolution(c.resolution));
      for (const auto* values : {&field.u, &field.v}) {
        observed += std::pow(rms(field.grid(), *values, 6), 2) / 2 / draws;
        at_edge += std::pow(rms(field.grid(), *values, 0), 2) / 2 / draws;
      }
      predicted += std::pow(rms(field.grid(), field.sigma_u, 6), 2) / draws;
      predicted_at_edge += std::pow(rms(field.grid(), field.sigma_u, 0), 2) / draws;
    }
    const double ratio = std::sqrt(observed / predicted),
                 ratio_everywhere = std::sqrt(at_edge / predicted_at_edge);
    EXPECT_NEAR(ratio, 1, 0.12) << c.subsets.size << ", order " << c.subsets.order;
    EXPECT_NEAR(ratio_everywhere, 1, 0.12) << c.subsets.size << ", order " << c.subsets.order;
    EXPECT_LT(std::sqrt(observed), c.most * 0.01) << c.subsets.size << ", order " << c.subsets.order;
  }
}

TEST(GlobalStep, ChoosesTheResolutionThatTheFieldNeeds) {
  // Noise alone on the left, a wave that needs the finest level on the right.
  const Grid grid = grid_of(120, 60, 5);
  const MeasuredSubsets subsets{.size = 21, .order = 1};
  Field field = noise_field(grid, subsets, 0.01, 4);
  const auto wave = [](double x) {
    return x < 300 ? 0 : 0.2 * std::sin(2 * std::numbers::pi * (x - 300) / 60);
  };
  const double left = dic::global::Transfer(subsets, 5).of_subset(60);
  for (std::size_t k = 0; k < field.u.size(); ++k) field.u[k] += left * wave(grid.x(k % 120));
  dic::global_step(field, subsets, kAutomatic);
  double flat = 0, waves = 0, normalized = 0;
  for (int j = 5; j < 55; ++j) {
    for (int i = 5; i < 40; ++i)
      flat += std::pow(field.u[static_cast<std::size_t>(j) * 120 + i], 2) / (50 * 35);
    for (int i = 70; i < 115; ++i) {
      const auto k = static_cast<std::size_t>(j) * 120 + i;
      const double error = field.u[k] - wave(grid.x(i));
      waves += error * error / (50 * 45);
      normalized += std::pow(error / field.sigma_u[k], 2) / (50 * 45);
    }
  }
  EXPECT_LT(std::sqrt(flat), 0.005);
  EXPECT_LT(std::sqrt(waves), 0.02);
  EXPECT_LT(std::sqrt(normalized), 1.5);
}

TEST(GlobalStep, ErrorsAreDrawnAgainFromWhatTheFieldKeeps) {
  const Grid grid = grid_of(100, 40, 5);
  const MeasuredSubsets subsets{.size = 21, .order = 1};
  for (const GlobalOptions& options : {kAutomatic, at_resolution(80)}) {
    Field field = noise_field(grid, subsets, 0.01, 6);
    const auto wave = [](double x) {
      return x < 250 ? 0 : 0.3 * std::sin(2 * std::numbers::pi * (x - 250) / 60);
    };
    for (std::size_t k = 0; k < field.u.size(); ++k) field.u[k] += wave(grid.x(k % 100));
    for (std::size_t k = 0; k < 2000; ++k) field.sigma_v[k] = 0.03f;
    for (int j = 8; j < 14; ++j) lose(field, 12, j);
    EXPECT_THROW(dic::global_errors(field, subsets, options), dic::UsageError);
    const dic::NodeValues<float> before = field.sigma_v;
    const dic::ErrorDraws first = dic::global_step(field, subsets, options);
    EXPECT_EQ(field.subset_sigma_v, before);
    EXPECT_EQ(dic::global_errors(field, subsets, options, 1).draws, first.draws);
    EXPECT_TRUE(std::isnan(field.resolution[8 * 100 + 12]));
    const float flat = field.resolution[30 * 100 + 20], waves = field.resolution[30 * 100 + 80];
    if (options.resolution) {
      EXPECT_FLOAT_EQ(flat, 80);
      EXPECT_FLOAT_EQ(waves, 80);
    } else {
      const auto least = static_cast<float>(dic::least_resolution(subsets, 5));
      EXPECT_FLOAT_EQ(waves, least);
      EXPECT_GT(flat, 1.5f * least);
    }
  }
}

TEST(GlobalStep, SigmaTellsWhatIsDamped) {
  const Grid grid = grid_of(120, 50, 5);
  const MeasuredSubsets subsets{.size = 21, .order = 1};
  Field field = noise_field(grid, subsets, 0.01, 9);
  const auto wave = [](double x) { return 0.3 * std::sin(2 * std::numbers::pi * x / 50); };
  const double left = dic::global::Transfer(subsets, 5).of_subset(50);
  for (std::size_t k = 0; k < field.u.size(); ++k) field.u[k] += left * wave(grid.x(k % 120));
  dic::global_step(field, subsets, at_resolution(80));
  double normalized = 0;
  for (int j = 5; j < 45; ++j)
    for (int i = 5; i < 115; ++i) {
      const auto k = static_cast<std::size_t>(j) * 120 + i;
      normalized += std::pow((field.u[k] - wave(grid.x(i))) / field.sigma_u[k], 2) / (40 * 110);
    }
  EXPECT_LT(std::sqrt(normalized), 1.6);
  EXPECT_GT(std::sqrt(normalized), 0.5);
}

/// Root mean square of error / sigma of u over the nodes that `counts` selects by their distance from an end.
double scatter_in_sigmas(const Field& field, const Displacement& truth,
                         const std::function<bool(int)>& counts) {
  const Grid& grid = field.grid();
  double sum = 0;
  int count = 0;
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      if (!counts(std::min({i, j, grid.nx - 1 - i, grid.ny - 1 - j}))) continue;
      const auto k = static_cast<std::size_t>(j) * grid.nx + i;
      sum += std::pow((field.u[k] - truth(grid.x(i), grid.y(j))) / field.sigma_u[k], 2);
      ++count;
    }
  return std::sqrt(sum / count);
}

TEST(GlobalStep, SigmaHoldsAtTheEndsOfLongWaves) {
  const MeasuredSubsets subsets{.size = 21, .order = 1};
  const dic::global::Transfer transfer(subsets, 5);
  double at_ends = 0, inside = 0;
  constexpr int seeds = 8;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    Field field = noise_field(grid_of(80, 80, 5), subsets, 0.01, seed);
    const double period = 250 + 50.0 * seed;
    const auto wave = [&](double x, double y) {
      return 0.5 * std::sin(2 * std::numbers::pi * (x + 0.3 * y) / period + seed);
    };
    const double left = transfer.of_subset(period / std::hypot(1, 0.3));
    for (std::size_t k = 0; k < field.u.size(); ++k)
      field.u[k] +=
          left * wave(field.grid().x(static_cast<int>(k % 80)), field.grid().y(static_cast<int>(k / 80)));
    dic::global_step(field, subsets, kAutomatic);
    at_ends += std::pow(scatter_in_sigmas(field, wave, [](int margin) { return margin < 3; }), 2) / seeds;
    inside += std::pow(scatter_in_sigmas(field, wave, [](int margin) { return margin >= 3; }), 2) / seeds;
  }
  EXPECT_NEAR(std::sqrt(at_ends), 1, 0.15);
  EXPECT_NEAR(std::sqrt(inside), 1, 0.25);
}

TEST(GlobalStep, SigmaOfBendsIsNoNoise) {
  // The subsets' sigma of u tells what they flatten of a ramp. The step restores it, and must not smooth
  // more.
  const MeasuredSubsets subsets{.size = 21, .order = 1};
  Field field = noise_field(grid_of(80, 40, 5), subsets, 0.01, 5);
  const auto ramp = [](double x, double) { return 1.5 * std::tanh((x - 200) / 30); };
  for (std::size_t k = 0; k < field.u.size(); ++k) {
    const double x = field.grid().x(static_cast<int>(k % 80));
    for (int i = -10; i <= 10; ++i) field.u[k] += ramp(x + i, 0) / 21;
    const double bend = ramp(x + 10, 0) - 2 * ramp(x, 0) + ramp(x - 10, 0);
    field.sigma_u[k] = static_cast<float>(std::hypot(0.01, bend / 4));
  }
  dic::global_step(field, subsets, kAutomatic);
  EXPECT_LT(scatter_in_sigmas(field, ramp, [](int) { return true; }), 1.3);
}

TEST(GlobalStep, RefusesResolutionsThatSubsetsDoNotHave) {
  Field field = measure(grid_of(9, 9, 5), [](double, double) { return 0.0; });
  EXPECT_THROW(dic::global_step(field, {.size = 33, .order = 1}, at_resolution(40)), dic::UsageError);
  EXPECT_THROW(dic::global_step(field, {}, at_resolution(-1)), dic::UsageError);
  EXPECT_GT(dic::least_resolution({.size = 33, .order = 1}, 5), 60);
  EXPECT_LT(dic::least_resolution({.size = 33, .order = 2}, 5), 60);
}

TEST(GlobalStep, TakesFieldsWithoutPoints) {
  Field field(grid_of(9, 9, 5));
  EXPECT_NO_THROW(dic::global_step(field, {}, kAutomatic));
  Field small = measure(grid_of(2, 2, 5), [](double x, double) { return x; });
  EXPECT_NO_THROW(dic::global_step(small, {}, kAutomatic));
  Field none = measure(grid_of(1, 1, 5), [](double, double) { return 2.0; });
  dic::global_step(none, {}, kAutomatic);
  EXPECT_EQ(none.u[0], 2);
}

}  // namespace
