#include "track/device_choice.hpp"

#include <gtest/gtest.h>

#include <dic/info.hpp>

#include "track/cuda/share_begin.hpp"

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

TEST(Shares, CoverAllEntriesAndSpareTheFirstGpu) {
  for (const int ranks : {1, 2, 3, 4, 8, 16})
    for (const std::int64_t n : {0, 1, 7, 1000, 644'809}) {
      EXPECT_EQ(cuda::share_begin(n, 0, ranks), 0);
      EXPECT_EQ(cuda::share_begin(n, ranks, ranks), n);
      for (int rank = 0; rank < ranks; ++rank)
        EXPECT_LE(cuda::share_begin(n, rank, ranks), cuda::share_begin(n, rank + 1, ranks));
    }
  // 0.1 + 0.9 * x = 0.9 * (1 - x): x = 4 / 9.
  EXPECT_EQ(cuda::share_begin(9000, 1, 2), 4000);
}

}  // namespace
}  // namespace dic::track
