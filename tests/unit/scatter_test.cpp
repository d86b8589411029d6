#include "fields/scatter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "support/strain_truth.hpp"

// Tests the check of sigmas by the scatter between neighbouring points. The errors are means of white noise
// over the pixels of each subset, whose standard deviation is known.
namespace dic::test {
namespace {

constexpr int kNodes = 80, kStep = 5, kSubset = 33;
constexpr double kSigma = 0.01;  ///< standard deviation of a displacement, px

/// Means of white noise over the subsets of a grid, of standard deviation kSigma.
std::vector<double> subset_errors(unsigned seed) {
  constexpr int side = (kNodes - 1) * kStep + kSubset, stride = side + 1;
  std::mt19937 random(seed);
  std::normal_distribution<double> gauss(0, kSigma / kSubset);
  std::vector<double> sums(static_cast<std::size_t>(stride) * stride);  // of all pixels above and to the left
  for (int y = 1; y <= side; ++y)
    for (int x = 1; x <= side; ++x)
      sums[y * stride + x] = gauss(random) + sums[(y - 1) * stride + x] + sums[y * stride + x - 1] -
                             sums[(y - 1) * stride + x - 1];
  std::vector<double> errors;
  for (int j = 0; j < kNodes; ++j)
    for (int i = 0; i < kNodes; ++i) {
      const int x = i * kStep, y = j * kStep;
      errors.push_back(sums[(y + kSubset) * stride + x + kSubset] - sums[y * stride + x + kSubset] -
                       sums[(y + kSubset) * stride + x] + sums[y * stride + x]);
    }
  return errors;
}

/// A field that bends, with these errors, whose sigmas are right.
Field noisy_field(unsigned seed) {
  Field field(full_grid(kNodes, kNodes, kStep));
  const std::vector<double> u = subset_errors(seed), v = subset_errors(seed + 1);
  for (int k = 0; k < kNodes * kNodes; ++k) {
    const int column = k % kNodes, row = k / kNodes;
    const double x = kStep * column, y = kStep * row;
    field.u[k] = 3 * std::sin(x / 100) + u[k];
    field.v[k] = 1e-4 * x * y + v[k];
    field.sigma_u[k] = field.sigma_v[k] = static_cast<float>(kSigma);
    field.status[k] = Status::ok;
  }
  return field;
}

TEST(Scatter, RightSigmasStay) {
  double sum = 0;
  for (unsigned seed = 0; seed < 20; seed += 2) {
    const fields::ScatterRatios found = fields::excess_scatter(noisy_field(seed), {.size = kSubset});
    EXPECT_LE(std::max(found.u, found.v), 1.03) << seed;
    sum += found.u + found.v - 2;
  }
  EXPECT_LT(sum / 20, 0.002);
}

TEST(Scatter, TooSmallSigmasAreFound) {
  for (const double factor : {1.35, 2.0, 5.0}) {
    Field field = noisy_field(1);
    for (float& sigma : field.sigma_v) sigma /= static_cast<float>(factor);
    // One point in ten is lost, and half of the field is torn at every tenth row.
    for (int k = 0; k < kNodes * kNodes; ++k) {
      if (k * 7919 % 83 < 8) field.status[k] = Status::low_correlation;
      const int column = k % kNodes, part = k / kNodes / 10;
      if (column > kNodes / 2) field.v[k] += part;
    }
    const fields::ScatterRatios found = fields::excess_scatter(field, {.size = kSubset});
    EXPECT_EQ(found.u, 1) << factor;
    EXPECT_NEAR(found.v, factor, 0.2 * factor);
  }
}

TEST(Scatter, ErrorsAlongOneAxisAreNoNoise) {
  Field field = noisy_field(3);
  for (int k = 0; k < kNodes * kNodes; ++k) field.u[k] += k / kNodes % 2 == 0 ? 0 : 0.05;
  EXPECT_EQ(fields::excess_scatter(field, {.size = kSubset}).u, 1);
}

TEST(Scatter, WavesInOneDirectionAreNoNoise) {
  for (const double period : {2.5 * kSubset, 4.0 * kSubset, 6.0 * kSubset}) {
    Field field = noisy_field(5);
    for (int k = 0; k < kNodes * kNodes; ++k) {
      const int row = k / kNodes;
      field.u[k] += 0.1 * std::sin(2 * std::numbers::pi * kStep * row / period);
    }
    EXPECT_LT(fields::excess_scatter(field, {.size = kSubset}).u, 1.1) << period;
  }
}

TEST(Scatter, LongWavesInBothDirectionsAreNoNoise) {
  Field field = noisy_field(7);
  for (int k = 0; k < kNodes * kNodes; ++k) {
    const int row = k / kNodes, column = k % kNodes;
    field.u[k] += 0.05 * std::sin(kStep * row / 25.0) * std::sin(kStep * column / 25.0);
  }
  EXPECT_LT(fields::excess_scatter(field, {.size = kSubset}).u, 1.1);
}

TEST(Scatter, FewPointsTellNothing) {
  Field field(full_grid(12, 12, kStep));
  for (int k = 0; k < 144; ++k) {
    field.u[k] = field.v[k] = k * k % 7;
    field.sigma_u[k] = field.sigma_v[k] = 0.01F;
    field.status[k] = Status::ok;
  }
  EXPECT_EQ(fields::excess_scatter(field, {.size = kSubset}).u, 1);
}

}  // namespace
}  // namespace dic::test
