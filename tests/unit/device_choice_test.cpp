#include "track/device_choice.hpp"

#include <gtest/gtest.h>

#include <dic/info.hpp>
#include <dic/track.hpp>

#include "track/cuda/shares.hpp"

namespace dic::track {
namespace {

TEST(DeviceChoice, WhatIsAskedForHolds) {
  EXPECT_EQ(choose_device("cpu", 1'000'000).device, "cpu");
  EXPECT_EQ(choose_device("cuda:3", 1).device, "cuda:3");
}

TEST(DeviceChoice, AutomaticLeavesFewPointsToTheCpuAndSaysSo) {
  const DeviceChoice choice = choose_device("auto", 100);
  EXPECT_EQ(choice.device, "cpu");
  EXPECT_NE(choice.reason.find("100 points"), std::string::npos) << choice.reason;
}

TEST(DeviceChoice, AutomaticTakesTheFirstGpuForManyPoints) {
  const DeviceChoice choice = choose_device("auto", 1'000'000);
  const auto devices = build_info().devices;
  EXPECT_EQ(choice.device, devices.empty() ? "cpu" : devices.front().name);
  EXPECT_FALSE(choice.reason.empty());
}

TEST(Shares, CoverAllPointsAndSpareTheFirstGpu) {
  for (const int ranks : {1, 2, 3, 4, 8, 16})
    for (const std::int64_t n : {0, 1, 7, 1000, 644'809}) {
      std::int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto own = cuda::own_points(n, rank, ranks);
        EXPECT_EQ(own.first, end);
        EXPECT_GE(own.count(), 0);
        end = own.last;
      }
      EXPECT_EQ(end, n);
    }
  // 0.03 + 0.97 * x = 0.97 * (1 - x): x = 47 / 97.
  EXPECT_EQ(cuda::own_points(9700, 0, 2).last, 4700);
}

TEST(Shares, KnowTheRowsAroundThem) {
  Image roi(50, 60, ScalarType::u8);
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 50; ++x) roi.row<std::uint8_t>(y)[x] = x + y > 70 ? 0 : 255;
  const Points points(make_grid(roi, 1));
  const auto row_of = [&](std::int64_t point) { return points.node_of[point] / points.grid.nx; };
  constexpr int reach = kernels::kIslandReach;
  for (const kernels::PointRange own : {kernels::PointRange{0, 17}, {1000, 1020}, {700, 1555}, {9, 9}}) {
    const auto known = cuda::known_points(points, own);
    for (std::int64_t i = 0; i < points.size(); ++i) {
      const bool near = own.count() > 0 && row_of(i) >= row_of(own.first) - reach &&
                        row_of(i) <= row_of(own.last - 1) + reach;
      EXPECT_EQ(near, i >= known.first && i < known.last) << i;
    }
  }
}

}  // namespace
}  // namespace dic::track
