#include "track/order_choice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

#include "support/strain_truth.hpp"

// Tests the choice between fields of order 1 and order 2.
namespace dic::track {
namespace {

constexpr int kSubset = 33, kNodes = 60, kStep = 5;
constexpr float kSigma1 = 0.01f, kSigma2 = 0.018f;

/// Fields of both orders. u of order 1: noise, and in the right half an error of this size. u of order 2: the
/// same noise plus independent noise, without the error. All noise is constant over a quarter of a subset.
std::pair<Field, Field> measured(double error) {
  std::mt19937 random(5);
  std::normal_distribution<double> gauss(0, 1);
  const auto grid = std::make_shared<const Grid>(test::full_grid(kNodes, kNodes, kStep));
  std::pair<Field, Field> fields{Field(grid), Field(grid)};
  constexpr int patch = 2;
  std::vector<double> draws(4 * (kNodes / patch) * (kNodes / patch));
  for (double& draw : draws) draw = gauss(random);
  const double added = std::sqrt(kSigma2 * kSigma2 - kSigma1 * kSigma1);
  for (int j = 0; j < kNodes; ++j)
    for (int i = 0; i < kNodes; ++i) {
      const int k = j * kNodes + i, draw = 4 * (j / patch * (kNodes / patch) + i / patch);
      auto& [first, second] = fields;
      first.u[k] = kSigma1 * draws[draw];
      first.v[k] = kSigma1 * draws[draw + 1];
      second.u[k] = first.u[k] + added * draws[draw + 2];
      second.v[k] = first.v[k] + added * draws[draw + 3];
      if (i >= kNodes / 2) first.u[k] += error;
      first.sigma_u[k] = first.sigma_v[k] = kSigma1;
      second.sigma_u[k] = second.sigma_v[k] = kSigma2;
      first.status[k] = second.status[k] = Status::ok;
    }
  return fields;
}

/// Share of columns [from, to) that took order 2.
double share_of_second(const Field& chosen, const Field& second, int from, int to) {
  int taken = 0;
  for (int j = 0; j < kNodes; ++j)
    for (int i = from; i < to; ++i) taken += chosen.u[j * kNodes + i] == second.u[j * kNodes + i];
  return static_cast<double>(taken) / (kNodes * (to - from));
}

TEST(ChoiceOfTheOrder, KeepsOrder1WhereNoiseExplainsTheDifference) {
  auto [chosen, second] = measured(0);
  choose_order(chosen, second, kSubset);
  EXPECT_LT(share_of_second(chosen, second, 0, kNodes), 0.001);
  double sigma = 0;
  for (const float s : chosen.sigma_u) sigma += s / chosen.sigma_u.size();
  EXPECT_LT(sigma, 1.05 * kSigma1);
}

TEST(ChoiceOfTheOrder, TakesOrder2WhereOrder1IsWrong) {
  auto [chosen, second] = measured(0.05);
  choose_order(chosen, second, kSubset);
  EXPECT_LT(share_of_second(chosen, second, 0, kNodes / 2 - 6), 0.001);
  EXPECT_GT(share_of_second(chosen, second, kNodes / 2, kNodes), 0.999);
  EXPECT_EQ(chosen.sigma_u[kNodes - 1], kSigma2);
}

TEST(ChoiceOfTheOrder, Order2KnowsOfKinks) {
  // Both fields have a kink at column 45, where order 2 was chosen: sigma is larger only there.
  auto [chosen, second] = measured(0.1);
  constexpr int kink = 45;
  constexpr double slope = 0.03;
  for (int j = 0; j < kNodes; ++j)
    for (int i = kink; i < kNodes; ++i)
      for (Field* field : {&chosen, &second}) field->u[j * kNodes + i] += slope * kStep * (i - kink);
  choose_order(chosen, second, kSubset);
  const int row = kNodes / 2 * kNodes;
  const double added = std::sqrt(std::pow(chosen.sigma_u[row + kink], 2) - std::pow(kSigma2, 2));
  // The fourth difference of a kink with a spacing of half a subset is -2 * slope * 15 px, plus noise.
  EXPECT_NEAR(added, 0.264 * (33.0 * 33 - 1) / 12 * 2 * slope * 15 / (2.0 * 15 * 15), 0.03);
  EXPECT_LT(chosen.sigma_u[row + kink - 9], 2 * kSigma2);
  EXPECT_LT(chosen.sigma_v[row + kink], 2 * kSigma2);
}

TEST(ChoiceOfTheOrder, TellsAnErrorThatItKeepsBySigma) {
  // an error as large as the noise that order 2 adds does not justify order 2
  auto [chosen, second] = measured(0.015);
  choose_order(chosen, second, kSubset);
  EXPECT_LT(share_of_second(chosen, second, kNodes / 2 + 6, kNodes), 0.3);
  double sigma = 0;
  for (int j = 0; j < kNodes; ++j) sigma += chosen.sigma_u[j * kNodes + kNodes - 8] / kNodes;
  EXPECT_GT(sigma, 1.3 * kSigma1);
}

TEST(ChoiceOfTheOrder, SaysWhichItTook) {
  auto [chosen, second] = measured(0.1);
  chosen.status[5] = Status::flat;
  second.status[5] = Status::flat;
  choose_order(chosen, second, kSubset);
  ASSERT_EQ(chosen.order.size(), chosen.u.size());
  EXPECT_EQ(chosen.order[5], 0);
  for (std::size_t k = 6; k < chosen.u.size(); ++k)
    ASSERT_EQ(chosen.order[k], chosen.u[k] == second.u[k] ? 2 : 1) << k;
}

TEST(ChoiceOfTheOrder, TakesWhatIsMeasured) {
  auto [chosen, second] = measured(0);
  chosen.status[100] = Status::not_converged;
  second.status[200] = Status::not_converged;
  const double kept = chosen.u[200];
  choose_order(chosen, second, kSubset);
  EXPECT_EQ(chosen.status[100], Status::ok);
  EXPECT_EQ(chosen.u[100], second.u[100]);
  EXPECT_EQ(chosen.status[200], Status::ok);
  EXPECT_EQ(chosen.u[200], kept);
}

}  // namespace
}  // namespace dic::track
