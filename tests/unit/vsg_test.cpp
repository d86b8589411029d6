#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <dic/vsg.hpp>
#include <numbers>

namespace dic::test {
namespace {

/// Share of a wave's strain that compute_strain keeps, for a wave as measured by subsets of order 0 and 1
/// (their mean over the subset).
double share_kept(const MeasuredSubsets& subsets, int window, int step, double period) {
  Grid grid;
  grid.step = step, grid.nx = 4000 / step, grid.ny = window;
  grid.inside.assign(grid.nodes(), 1);
  Field field(grid);
  const double k = 2 * std::numbers::pi / period, amplitude = 1e-3;
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      double sum = 0, total = 0;
      for (int x = -(subsets.size / 2); x <= subsets.size / 2; ++x) {
        const double weight = subsets.weights == SubsetWeights::uniform
                                  ? 1
                                  : std::exp(-8.0 * x * x / (subsets.size * subsets.size));
        sum += weight * std::sin(k * (grid.x(i) + x)), total += weight;
      }
      const auto node = static_cast<std::size_t>(j) * grid.nx + i;
      field.u[node] = amplitude * sum / total;
      field.v[node] = 0;
      field.status[node] = Status::ok;
    }
  const StrainField strain = compute_strain(field, {window, StrainMeasure::engineering}, 1);
  double largest = 0;
  for (int i = window; i < grid.nx - window; ++i)  // only complete windows
    largest =
        std::max(largest, std::abs(double{strain.exx[static_cast<std::size_t>(window / 2) * grid.nx + i]}));
  return largest / (amplitude * k);
}

TEST(Vsg, ResolutionIsThePeriodThatKeepsNineTenths) {
  for (const auto& [size, window, step] : {std::array{15, 3, 5}, {33, 5, 5}, {21, 11, 3}, {33, 21, 10}}) {
    for (const SubsetWeights weights : {SubsetWeights::uniform, SubsetWeights::gaussian}) {
      const MeasuredSubsets subsets{size, 1, weights};
      const double period = vsg_resolution(subsets, window, step);
      EXPECT_NEAR(share_kept(subsets, window, step, period), 0.9, 5e-3)
          << size << " " << window << " " << step << " " << to_string(weights);
    }
  }
  EXPECT_LT(vsg_resolution({33, 2}, 5, 5), 0.9 * vsg_resolution({33, 1}, 5, 5)) << "a parabola follows more";
}

TEST(Vsg, OptionsHaveProblems) {
  EXPECT_TRUE(VsgOptions().validate().empty());
  VsgOptions options;
  options.subsets = {20};
  EXPECT_EQ(options.validate().size(), 1u);
  options.windows.clear();
  EXPECT_FALSE(options.validate().empty());
  EXPECT_THROW(sweep_vsg(options, ImageView(), ImageView()), UsageError);
}

}  // namespace
}  // namespace dic::test
