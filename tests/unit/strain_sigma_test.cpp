#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <dic/fields.hpp>
#include <dic/shared/strain_flattening.hpp>
#include <numbers>
#include <random>

#include "support/strain_truth.hpp"

// Tests standard deviations of strain against sums over all pairs of nodes and finite differences, and strain
// of rotations.
namespace dic::test {
namespace {

constexpr StrainMeasure kMeasures[] = {StrainMeasure::green_lagrange, StrainMeasure::engineering,
                                       StrainMeasure::hencky, StrainMeasure::almansi};

/// Influence of each pixel's noise on the displacement of a subset's centre, from a least-squares fit of the
/// terms of the shape function that are not orthogonal to the constant.
Eigen::MatrixXd influence(const MeasuredSubsets& subsets) {
  const int side = subsets.size, half = side / 2, terms = subsets.order < 2 ? 1 : 3;
  Eigen::MatrixXd design(side * side, terms);
  for (int j = 0; j < side; ++j)
    for (int i = 0; i < side; ++i) {
      const double x = i - half, y = j - half;
      design(j * side + i, 0) = 1;
      if (terms == 3) design(j * side + i, 1) = x * x, design(j * side + i, 2) = y * y;
    }
  Eigen::VectorXd window = Eigen::VectorXd::Ones(side * side);
  if (subsets.weights == SubsetWeights::gaussian)
    for (int k = 0; k < side * side; ++k)
      window[k] =
          std::exp(-8.0 * (std::pow(k % side - half, 2) + std::pow(k / side - half, 2)) / (side * side));
  const Eigen::MatrixXd weighted = design.transpose() * window.asDiagonal();
  Eigen::VectorXd weights = (weighted * design).inverse().row(0) * weighted;
  weights.normalize();
  return weights.reshaped(side, side);
}

double correlation(const Eigen::MatrixXd& weights, int dx, int dy) {
  const auto side = static_cast<int>(weights.rows());
  const int width = side - std::abs(dx), height = side - std::abs(dy);
  if (width <= 0 || height <= 0) return 0;
  const auto part = [&](int sign) {
    return weights.block(std::max(0, sign * dx), std::max(0, sign * dy), width, height);
  };
  return part(1).cwiseProduct(part(-1)).sum();
}

/// Number of nodes around a window that keeps its subsets away from the border of the grid.
int margin_of(const MeasuredSubsets& subsets, int window, int step) {
  return window / 2 + subsets.size / 2 / step + 1;
}

Field noisy_field(const Grid& grid, const Eigen::Matrix2d& gradient, double sigma_u, double sigma_v) {
  Field field(grid);
  for (std::int64_t k = 0; k < grid.nodes(); ++k) {
    const Eigen::Vector2d at(grid.x(static_cast<int>(k % grid.nx)), grid.y(static_cast<int>(k / grid.nx)));
    const Eigen::Vector2d moved = gradient * at;
    field.u[k] = moved.x(), field.v[k] = moved.y();
    field.sigma_u[k] = static_cast<float>(sigma_u), field.sigma_v[k] = static_cast<float>(sigma_v);
    field.status[k] = Status::ok;
  }
  return field;
}

/// Covariance of the slopes of the plane through the `ok` nodes of the window around a node, by the sum over
/// all pairs.
Eigen::Matrix2d slope_covariance(const Field& field, int window, int ci, int cj,
                                 const Eigen::MatrixXd& weights) {
  const Grid& grid = field.grid();
  const Nodes connected = connected_nodes(grid, field, window, ci, cj);
  const std::vector<std::pair<int, int>> nodes(connected.begin(), connected.end());
  const auto n = static_cast<Eigen::Index>(nodes.size());
  Eigen::MatrixXd design(n, 3), covariance(n, n);
  for (Eigen::Index a = 0; a < n; ++a) {
    design.row(a) << 1, grid.x(nodes[a].first), grid.y(nodes[a].second);
    for (Eigen::Index b = 0; b < n; ++b)
      covariance(a, b) = correlation(weights, (nodes[a].first - nodes[b].first) * grid.step,
                                     (nodes[a].second - nodes[b].second) * grid.step);
  }
  const Eigen::MatrixXd fit = (design.transpose() * design).inverse() * design.transpose();
  return (fit * covariance * fit.transpose()).bottomRightCorner<2, 2>();
}

struct Sigma {
  double exx, eyy, exy;
};

/// Standard deviations of the strain, by finite differences of its definition.
Sigma propagated(const Eigen::Matrix2d& gradient, StrainMeasure measure, const Eigen::Matrix2d& covariance,
                 double sigma_u, double sigma_v) {
  Eigen::Matrix<double, 3, 4> change;
  for (int k = 0; k < 4; ++k) {
    constexpr double step = 1e-6;
    Eigen::Matrix2d d = Eigen::Matrix2d::Zero();
    d(k / 2, k % 2) = step;
    const Eigen::Matrix2d e =
        (strain_tensor(gradient + d, measure) - strain_tensor(gradient - d, measure)) / (2 * step);
    change.col(k) << e(0, 0), e(1, 1), e(0, 1);
  }
  Eigen::Matrix4d all = Eigen::Matrix4d::Zero();
  all.topLeftCorner<2, 2>() = sigma_u * sigma_u * covariance;
  all.bottomRightCorner<2, 2>() = sigma_v * sigma_v * covariance;
  const Eigen::Vector3d sigma = (change * all * change.transpose()).diagonal().cwiseSqrt();
  return {sigma(0), sigma(1), sigma(2)};
}

void expect_near(const StrainField& got, std::size_t k, const Sigma& want, double share) {
  EXPECT_NEAR(got.sigma_exx[k] / want.exx, 1, share);
  EXPECT_NEAR(got.sigma_eyy[k] / want.eyy, 1, share);
  EXPECT_NEAR(got.sigma_exy[k] / want.exy, 1, share);
}

TEST(StrainSigma, OfCompleteWindowsIsTheSumOverAllPairsOfNodes) {
  for (const int window : {3, 7, 11})
    for (const int step : {1, 3, 10, 40})
      for (const MeasuredSubsets subsets : {MeasuredSubsets{15, 1},
                                            {33, 0},
                                            {21, 2},
                                            {33, 2},
                                            {33, 1, SubsetWeights::gaussian},
                                            {33, 2, SubsetWeights::gaussian}}) {
        SCOPED_TRACE("window " + std::to_string(window) + ", step " + std::to_string(step) + ", subset " +
                     std::to_string(subsets.size) + ", order " + std::to_string(subsets.order));
        const int middle = margin_of(subsets, window, step), side = 2 * middle + 1;
        const Grid grid = full_grid(side, side, step);
        const Field field = noisy_field(grid, Eigen::Matrix2d::Zero(), 0.01, 0.02);
        const std::size_t centre = field.status.size() / 2;
        const StrainField got = compute_strain(field, {window}, 1, subsets);
        const Eigen::Matrix2d slopes = slope_covariance(field, window, middle, middle, influence(subsets));
        expect_near(got, centre,
                    propagated(Eigen::Matrix2d::Zero(), StrainMeasure::engineering, slopes, 0.01, 0.02),
                    1e-3);
      }
}

TEST(StrainSigma, FollowsTheMeasure) {
  const MeasuredSubsets subsets{21, 1};
  const int middle = margin_of(subsets, 5, 5), side = 2 * middle + 1;
  const Grid grid = full_grid(side, side, 5);
  const Eigen::Matrix2d unit = slope_covariance(noisy_field(grid, Eigen::Matrix2d::Zero(), 1, 1), 5, middle,
                                                middle, influence(subsets));
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(-0.4, 0.4);
  for (int trial = 0; trial < 50; ++trial) {
    Eigen::Matrix2d gradient;
    gradient << any(random), any(random), any(random), any(random);
    if (trial == 0) gradient.setZero();
    if (trial == 1) gradient << 0.2, 0, 0, 0.2;
    if (trial == 2) gradient << -1, -1, 1, -1;  // a quarter of a turn
    for (const StrainMeasure measure : kMeasures) {
      const StrainField got =
          compute_strain(noisy_field(grid, gradient, 0.01, 0.03), {5, measure}, 1, subsets);
      SCOPED_TRACE(std::string(to_string(measure)) + " " + std::to_string(trial));
      expect_near(got, got.exx.size() / 2, propagated(gradient, measure, unit, 0.01, 0.03), 2e-3);
    }
  }
}

bool is_lost(int kind, int i, int j, int half, std::mt19937& random) {
  switch (kind) {
    case 0:  // an edge
      return i > 0;
    case 1:  // a corner
      return i > half / 2 || j < -half / 2;
    case 2:  // scattered nodes
      return random() % 100 < 25;
    case 3:  // a slanting edge
      return i + j > 1;
    default:  // part of a hole
      return std::hypot(i - half, j - half) < half;
  }
}

TEST(StrainSigma, OfIncompleteWindowsIsNearTheSum) {
  for (const int window : {5, 9, 15})
    for (const int step : {2, 5, 20})
      for (const MeasuredSubsets subsets : {MeasuredSubsets{15, 1}, {33, 1}, {21, 2}})
        for (const int kind : {0, 1, 2, 3, 4}) {
          SCOPED_TRACE("window " + std::to_string(window) + ", step " + std::to_string(step) + ", subset " +
                       std::to_string(subsets.size) + ", order " + std::to_string(subsets.order) + ", loss " +
                       std::to_string(kind));
          const int middle = margin_of(subsets, window, step), side = 2 * middle + 1;
          const Grid grid = full_grid(side, side, step);
          Field field = noisy_field(grid, Eigen::Matrix2d::Zero(), 0.01, 0.01);
          std::mt19937 random(window + kind);
          const int half = window / 2;
          for (int j = -half; j <= half; ++j)
            for (int i = -half; i <= half; ++i)
              if (is_lost(kind, i, j, half, random) && (i != 0 || j != 0))
                field.status[static_cast<std::size_t>(j + middle) * side + i + middle] = Status::flat;
          const StrainField got = compute_strain(field, {window}, 1, subsets);
          const std::size_t centre = field.status.size() / 2;
          ASSERT_FALSE(std::isnan(got.exx[centre]));
          const Eigen::Matrix2d slopes = slope_covariance(field, window, middle, middle, influence(subsets));
          const Sigma want =
              propagated(Eigen::Matrix2d::Zero(), StrainMeasure::engineering, slopes, 0.01, 0.01);
          // Rectangles and scattered losses are nearly exact; other outlines are approximated by their
          // moments.
          expect_near(got, centre, want, kind < 2 ? 1e-3 : kind == 2 ? 0.1 : 0.15);
        }
}

/// Influence of the pixels (i, j) of a subset without those before (left, top) on the displacement at its
/// node.
Eigen::MatrixXd cut_influence(const MeasuredSubsets& subsets, int left, int top) {
  const int half = subsets.size / 2, side = subsets.size;
  const int terms = subsets.order == 0 ? 1 : subsets.order == 1 ? 3 : 6;
  Eigen::MatrixXd design = Eigen::MatrixXd::Zero(side * side, terms);
  for (int j = std::max(-half, top); j <= half; ++j)
    for (int i = std::max(-half, left); i <= half; ++i) {
      const double all[] = {1, double(i), double(j), double(i) * i, double(i) * j, double(j) * j};
      for (int k = 0; k < terms; ++k) design((j + half) * side + i + half, k) = all[k];
    }
  const Eigen::VectorXd weights = (design.transpose() * design).inverse().row(0) * design.transpose();
  return weights.reshaped(side, side);
}

TEST(StrainSigma, KnowsThatTheBorderCutsSubsets) {
  for (const MeasuredSubsets subsets : {MeasuredSubsets{21, 0}, {21, 1}, {33, 1}, {21, 2}})
    for (const int window : {3, 5, 9}) {
      constexpr int step = 5, nodes = 24;
      const Grid grid = full_grid(nodes, nodes, step);
      Field field = noisy_field(grid, Eigen::Matrix2d::Zero(), 0.01, 0.01);
      const Eigen::MatrixXd whole = cut_influence(subsets, -subsets.size, -subsets.size);
      const auto weights = [&](int i, int j) { return cut_influence(subsets, -i * step, -j * step); };
      for (int j = 0; j < 18; ++j)
        for (int i = 0; i < 18; ++i)
          field.sigma_u[j * nodes + i] = field.sigma_v[j * nodes + i] =
              static_cast<float>(0.01 * weights(i, j).norm() / whole.norm());
      const StrainField got = compute_strain(field, {window}, 1, subsets);
      for (const auto& [ci, cj] : {std::pair{0, 11}, {1, 11}, {3, 11}, {11, 0}, {11, 2}}) {
        const int half = window / 2;
        std::vector<std::pair<int, int>> members;
        for (int j = std::max(0, cj - half); j <= cj + half; ++j)
          for (int i = std::max(0, ci - half); i <= ci + half; ++i) members.emplace_back(i, j);
        const auto n = static_cast<Eigen::Index>(members.size());
        Eigen::MatrixXd plane(n, 3), errors = Eigen::MatrixXd::Zero(n, 160 * 160);
        for (Eigen::Index a = 0; a < n; ++a) {
          const auto [i, j] = members[a];
          plane.row(a) << 1, i * step, j * step;
          const Eigen::MatrixXd w = weights(i, j);
          const int r = subsets.size / 2;
          for (int y = -r; y <= r; ++y)
            for (int x = -r; x <= r; ++x)
              if (i * step + x >= 0 && j * step + y >= 0)
                errors(a, (j * step + y) * 160 + i * step + x) = w(x + r, y + r);
        }
        const Eigen::MatrixXd fit = (plane.transpose() * plane).inverse() * plane.transpose() * errors;
        const double scale = 0.01 / whole.norm();
        const std::size_t k = static_cast<std::size_t>(cj) * nodes + ci;
        SCOPED_TRACE("subset " + std::to_string(subsets.size) + ", order " + std::to_string(subsets.order) +
                     ", window " + std::to_string(window) + ", node " + std::to_string(ci) + "," +
                     std::to_string(cj));
        EXPECT_NEAR(got.sigma_exx[k] / (scale * fit.row(1).norm()), 1, 0.1);
        EXPECT_NEAR(got.sigma_eyy[k] / (scale * fit.row(2).norm()), 1, 0.1);
      }
    }
}

TEST(StrainSigma, TakesTheNoiseOfTheWholeWindow) {
  const Grid grid = full_grid(9, 9, 5);
  Field field = noisy_field(grid, Eigen::Matrix2d::Zero(), 0.01, 0.01);
  const float even = compute_strain(field, {9}, 1, MeasuredSubsets{}).sigma_exx[40];
  for (int j = 0; j < 9; ++j)
    for (int i = 0; i < 4; ++i) field.sigma_u[j * 9 + i] = 0.03f;
  const double share = compute_strain(field, {9}, 1, MeasuredSubsets{}).sigma_exx[40] / even;
  EXPECT_GT(share, 1.8) << "half of the nodes have three times the noise: 2.2 times that of the window";
  EXPECT_LT(share, 2.6);
}

TEST(StrainSigma, FollowsTheOrderOfThePoints) {
  const Grid grid = full_grid(21, 25, 5);
  Field field = noisy_field(grid, Eigen::Matrix2d::Zero(), 0.01, 0.01);
  const auto sigmas = [&](int order, bool of_points) {
    field.order =
        NodeValues<std::uint8_t>(of_points ? field.status.size() : 0, static_cast<std::uint8_t>(order));
    return compute_strain(field, {5}, 1, MeasuredSubsets{21, of_points ? 1 : order}).sigma_exx;
  };
  const NodeValues<float> first = sigmas(1, false), second = sigmas(2, false);
  EXPECT_EQ(sigmas(1, true)[12 * 21 + 10], first[12 * 21 + 10]);
  EXPECT_EQ(sigmas(2, true)[12 * 21 + 10], second[12 * 21 + 10]);
  EXPECT_GT(std::abs(second[12 * 21 + 10] / first[12 * 21 + 10] - 1), 0.05);
  for (int j = 0; j < 25; ++j)
    for (int i = 0; i < 10; ++i) field.order[j * 21 + i] = 1;  // columns from 10 on have order 2
  const NodeValues<float> mixed = compute_strain(field, {5}, 1, MeasuredSubsets{21, 1}).sigma_exx;
  EXPECT_EQ(mixed[12 * 21 + 5], first[12 * 21 + 5]);
  EXPECT_EQ(mixed[12 * 21 + 15], second[12 * 21 + 15]);
  const auto [least, most] = std::minmax(first[12 * 21 + 10], second[12 * 21 + 10]);
  EXPECT_GT(mixed[12 * 21 + 10], least) << "a window with points of both orders is between those of one";
  EXPECT_LT(mixed[12 * 21 + 10], most);
}

/// The errors of nodes are independent, so the covariance of the slope is that of independent values.
TEST(StrainSigma, FollowsDrawsOfErrors) {
  const Grid grid = full_grid(40, 40, 5);
  Field field = noisy_field(grid, Eigen::Matrix2d::Zero(), 0.01, 0.03);
  std::mt19937 random(5);
  std::normal_distribution<float> error(0, 7);  // the standard deviation of the draws does not matter
  ErrorDraws errors;
  for (int k = 0; k < 16; ++k) {
    errors.draws.emplace_back(field.status.size());
    for (float& value : errors.draws.back()) value = error(random);
  }
  field.status[5 * 40 + 5] = Status::outlier;
  const StrainField strain = compute_strain(field, {5}, 2, errors);
  const double slope = 1 / std::sqrt(5 * (4 + 1 + 0 + 1 + 4)) / grid.step;
  for (int j = 8; j < 32; ++j)
    for (int i = 8; i < 32; ++i) {
      const std::size_t k = static_cast<std::size_t>(j) * 40 + i;
      ASSERT_NEAR(strain.sigma_exx[k] / (0.01 * slope), 1, 0.15) << i << "," << j;
      ASSERT_NEAR(strain.sigma_exy[k] / (std::hypot(0.01, 0.03) / 2 * slope), 1, 0.15) << i << "," << j;
    }
}

/// A wave of u along x, averaged along x over `averaged` px as subsets of order 1 average it.
Field wave_field(const Grid& grid, double period, int averaged, double sigma) {
  Field field = noisy_field(grid, Eigen::Matrix2d::Zero(), sigma, sigma);
  const double k = 2 * std::numbers::pi / period;
  const double kept = averaged > 1 ? std::sin(k * averaged / 2) / (averaged * std::sin(k / 2)) : 1;
  for (std::int64_t node = 0; node < grid.nodes(); ++node)
    field.u[node] = kept * std::sin(k * grid.x(static_cast<int>(node % grid.nx)));
  return field;
}

/// Root mean square error of exx in a wave of amplitude 1 over its predicted sigma, at nodes at least
/// `margin` nodes from the left and right border, or nearer than that.
double wave_error_over_sigma(const Field& field, const StrainField& strain, double period, int margin,
                             bool inside) {
  const Grid& grid = field.grid();
  const double k = 2 * std::numbers::pi / period;
  double errors = 0, sigmas = 0;
  for (int i = 0; i < grid.nx; ++i) {
    if ((std::min(i, grid.nx - 1 - i) >= margin) != inside) continue;
    const std::size_t node = static_cast<std::size_t>(grid.ny / 2) * grid.nx + i;
    errors += std::pow(strain.exx[node] - k * std::cos(k * grid.x(i)), 2);
    sigmas += std::pow(strain.sigma_exx[node], 2);
  }
  return std::sqrt(errors / sigmas);
}

TEST(StrainSigma, TellsWhatWindowsAndSubsetsFlatten) {
  const Grid grid = full_grid(101, 61, 5);
  for (const double period : {250.0, 400.0})
    for (const int window : {5, 9, 15})
      for (const int order : {1, 2}) {
        SCOPED_TRACE("period " + std::to_string(period) + ", window " + std::to_string(window) + ", order " +
                     std::to_string(order));
        const Field field = wave_field(grid, period, order == 1 ? 33 : 1, 1e-6);
        const StrainField strain =
            compute_strain(field, {window, StrainMeasure::engineering}, 2, MeasuredSubsets{33, order});
        const double ratio = wave_error_over_sigma(field, strain, period, window, true);
        EXPECT_GT(ratio, 0.8);
        EXPECT_LT(ratio, 1.3);
        EXPECT_LT(wave_error_over_sigma(field, strain, period, window / 2, false), 1.7) << "at the border";
        for (std::size_t k = 0; k < strain.exx.size(); ++k)
          ASSERT_FALSE(strain.sigma_eyy[k] > 1e-6) << "v does not vary";
      }
}

TEST(StrainSigma, TellsWhatWindowsFlattenBesideAHole) {
  // A hole that expands: exx is harmonic, so that its second derivatives along both axes are opposite.
  const Grid grid = full_grid(81, 81, 5);
  const double radius = 60, pressed = 0.01 * radius * radius;
  for (const int window : {5, 9, 15}) {
    Field field = noisy_field(grid, Eigen::Matrix2d::Zero(), 1e-6, 1e-6);
    std::vector<double> exx(field.u.size());
    double errors = 0, sigmas = 0;
    const auto visit = [&](const auto& body) {
      for (std::size_t k = 0; k < exx.size(); ++k) {
        const double x = grid.x(static_cast<int>(k % 81)) - grid.x(40),
                     y = grid.y(static_cast<int>(k / 81)) - grid.y(40);
        body(k, x, y, x * x + y * y);
      }
    };
    visit([&](std::size_t k, double x, double y, double square) {
      if (square <= radius * radius) field.status[k] = dic::Status::low_correlation;
      field.u[k] = pressed * x / square, field.v[k] = pressed * y / square;
      exx[k] = pressed * (y * y - x * x) / (square * square);
    });
    const StrainField strain =
        compute_strain(field, {window, StrainMeasure::engineering}, 2, MeasuredSubsets{33, 2});
    visit([&](std::size_t k, double, double, double square) {
      if (std::isnan(strain.exx[k]) || std::sqrt(square) > radius + 5.0 * window) return;
      errors += std::pow(strain.exx[k] - exx[k], 2);
      sigmas += std::pow(strain.sigma_exx[k], 2);
    });
    EXPECT_LT(std::sqrt(errors / sigmas), 1.2) << window;
  }
}

/// A window flattens a short wave so much that the differences of the strain change their sign elsewhere than
/// its error.
TEST(StrainSigma, TellsTheErrorAlsoWhereItsEstimateChangesSign) {
  const Grid grid = full_grid(101, 61, 5);
  constexpr double kPeriod = 100;
  const double k = 2 * std::numbers::pi / kPeriod;
  const Field field = wave_field(grid, kPeriod, 1, 1e-5);
  const StrainField strain =
      compute_strain(field, {15, StrainMeasure::engineering}, 2, MeasuredSubsets{33, 2});
  double worst = 0;
  for (int i = 15; i < grid.nx - 15; ++i) {
    const std::size_t node = std::size_t{30} * grid.nx + i;
    worst =
        std::max(worst, std::abs(strain.exx[node] - k * std::cos(k * grid.x(i))) / strain.sigma_exx[node]);
  }
  EXPECT_LT(worst, 3);
  EXPECT_LT(wave_error_over_sigma(field, strain, kPeriod, 15, true), 1.4);
}

/// Influence of each pixel's noise on the slope along x of a window whose first node is at (first_x, first_y)
/// of an area of pixels.
Eigen::MatrixXd influence_on_slope(const MeasuredSubsets& subsets, int step, int window, int first_x,
                                   int first_y, int width, int height) {
  const Eigen::MatrixXd of_subset = influence(subsets);
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(width, height);
  for (int j = 0; j < window; ++j)
    for (int i = 0; i < window; ++i)
      sum.block(first_x + i * step, first_y + j * step, subsets.size, subsets.size) +=
          (i - window / 2) * of_subset;
  return sum;
}

TEST(StrainSigma, NoiseOfNeighbouringWindowsCorrelatesByTheirPixels) {
  for (const MeasuredSubsets& subsets :
       {MeasuredSubsets{33, 1}, MeasuredSubsets{21, 2}, MeasuredSubsets{21, 2, SubsetWeights::gaussian}})
    for (const int window : {3, 5, 9}) {
      constexpr int kStep = 5, kMost = 14;
      const strain::SlopeCorrelation correlation(subsets, kStep, window, kMost);
      const int side = (window - 1 + kMost) * kStep + subsets.size;
      const auto at = [&](int di, int dj) {
        return influence_on_slope(subsets, kStep, window, di * kStep, dj * kStep, side, side);
      };
      const Eigen::MatrixXd here = at(0, 0);
      for (const int lag : {0, 1, 2, 4, 7, kMost}) {
        SCOPED_TRACE("subset " + std::to_string(subsets.size) + ", window " + std::to_string(window) +
                     ", lag " + std::to_string(lag));
        EXPECT_NEAR(correlation.along(lag), here.cwiseProduct(at(lag, 0)).sum() / here.squaredNorm(), 0.01);
        EXPECT_NEAR(correlation.across(lag), here.cwiseProduct(at(0, lag)).sum() / here.squaredNorm(), 0.01);
      }
    }
}

TEST(StrainSigma, IsNotRaisedByNoise) {
  const Grid grid = full_grid(120, 120, 40);  // subsets share no pixels
  Field field = noisy_field(grid, Eigen::Matrix2d::Zero(), 0.01, 0.01);
  std::mt19937 random(11);
  std::normal_distribution<double> error(0, 0.01);
  const StrainField exact = compute_strain(field, {5}, 2, MeasuredSubsets{33, 1});
  for (std::size_t k = 0; k < field.status.size(); ++k)
    field.u[k] = error(random), field.v[k] = error(random);
  const StrainField noisy = compute_strain(field, {5}, 2, MeasuredSubsets{33, 1});
  double raised = 0, count = 0;
  for (int j = 10; j < 110; ++j)
    for (int i = 10; i < 110; ++i) {
      const std::size_t k = static_cast<std::size_t>(j) * 120 + i;
      raised += std::pow(noisy.sigma_exx[k] / exact.sigma_exx[k], 2), count += 1;
    }
  EXPECT_LT(std::sqrt(raised / count), 1.05);
}

TEST(StrainSigma, IsMissingWhereStrainOrSubsetsAre) {
  const Grid grid = full_grid(9, 9, 5);
  Field field = noisy_field(grid, Eigen::Matrix2d::Zero(), 0.01, 0.01);
  EXPECT_TRUE(std::isnan(compute_strain(field).sigma_exx[40])) << "nobody says what subsets share";
  field.status[40] = Status::flat;
  const StrainField strain = compute_strain(field, {}, 1, MeasuredSubsets{});
  for (std::size_t k = 0; k < strain.exx.size(); ++k)
    EXPECT_EQ(std::isnan(strain.exx[k]), std::isnan(strain.sigma_exy[k])) << k;
}

/// The displacements are exact, so only rounding errors remain.
TEST(Strain, RigidRotationsHaveNoGreenLagrangeStrain) {
  for (const double degrees : {30.0, 90.0, 170.0, 180.0}) {
    const Eigen::Matrix2d gradient =
        Eigen::Rotation2Dd(degrees * std::numbers::pi / 180).toRotationMatrix() - Eigen::Matrix2d::Identity();
    const Field field = noisy_field(full_grid(200, 200, 5), gradient, 0, 0);
    const StrainField strain = compute_strain(field, {}, 2);
    double largest = 0;
    for (const auto* component : {&strain.exx, &strain.eyy, &strain.exy})
      for (const float e : *component)
        if (!std::isnan(e)) largest = std::max(largest, std::abs(double{e}));
    EXPECT_LT(largest, 1e-12) << degrees;
  }
}

}  // namespace
}  // namespace dic::test
