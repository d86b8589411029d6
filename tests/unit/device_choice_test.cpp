#include "track/device_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <dic/info.hpp>
#include <dic/track.hpp>
#include <utility>
#include <vector>

#include "track/cuda/multi_gpu/partition.hpp"

namespace dic::track {
namespace {

TrackOptions on(const std::string& device, int step = 5) {
  TrackOptions options;
  options.device = device;
  options.step = step;
  return options;
}

TEST(DeviceChoice, WhatIsAskedForHolds) {
  EXPECT_EQ(choose_device(on("cpu"), 1'000'000).device, "cpu");
  EXPECT_EQ(choose_device(on("cuda:3"), 1).device, "cuda:3");
}

TEST(DeviceChoice, AutomaticMeasuresAPairOnManyCores) {
  TrackOptions pair = on("auto");
  pair.expected_frames = 1;
  pair.threads = 16;
  EXPECT_EQ(choose_device(pair, 35'721).device, "cpu");
  EXPECT_FALSE(start_device(pair, 1024 * 1024).valid());
  pair.expected_frames = 100;
  EXPECT_TRUE(start_device(pair, 1024 * 1024).valid());
}

TEST(DeviceChoice, AutomaticLeavesFewPointsToTheCpuAndSaysSo) {
  const DeviceChoice choice = choose_device(on("auto"), 100);
  EXPECT_EQ(choice.device, "cpu");
  EXPECT_NE(choice.reason.find("100 points"), std::string::npos) << choice.reason;
}

TEST(DeviceChoice, AutomaticTakesTheFirstGpuForManyPoints) {
  const DeviceChoice choice = choose_device(on("auto"), 1'000'000);
  const auto devices = build_info().devices;
  EXPECT_EQ(choice.device, devices.empty() ? "cpu" : devices.front().name);
  EXPECT_FALSE(choice.reason.empty());
}

TEST(DeviceChoice, StartsAGpuOnlyWhereOneWillBeChosen) {
  EXPECT_FALSE(start_device(on("cpu", 1), 1 << 30).valid());
  EXPECT_FALSE(start_device(on("auto"), 0).valid());
  EXPECT_FALSE(start_device(on("auto", 16), 128 * 128).valid());
  EXPECT_TRUE(start_device(on("auto"), 4096 * 4096).valid());
  EXPECT_TRUE(start_device(on("cuda"), 0).valid());
  EXPECT_TRUE(start_device(on("cuda:99"), 0).valid()) << "what is wrong is told where it is opened";
}

void expect_all_covered(const cuda::Partition& partition, std::int64_t points) {
  std::int64_t end = 0;
  for (const PointRange& own : partition) {
    EXPECT_EQ(own.first, end);
    EXPECT_GE(own.count(), 0);
    end = own.last;
  }
  EXPECT_EQ(end, points);
}

TEST(Partition, AreEqualWorkAtFirst) {
  for (const int ranks : {1, 2, 3, 4, 8, 16})
    for (const std::int64_t n : {0, 1, 7, 1000, 644'809}) {
      const auto partition = cuda::first_partition(n, ranks);
      ASSERT_EQ(std::ssize(partition), ranks);
      expect_all_covered(partition, n);
      const auto field = cuda::kFieldWork * static_cast<double>(n);
      const double work = (static_cast<double>(n) + field) / ranks;
      EXPECT_NEAR(static_cast<double>(partition[0].count()) + field, work, 1);
      for (int rank = 1; rank < ranks; ++rank)
        EXPECT_NEAR(static_cast<double>(partition[rank].count()), work, 1);
    }
}

/// GPUs of different speed get rows of different cost so that their times become equal.
TEST(Partition, MoveUntilAllTakeEquallyLong) {
  Image everywhere({100, 400}, ScalarType::u8);
  for (int y = 0; y < 400; ++y) std::fill_n(everywhere.row<std::uint8_t>(y), 100, 255);
  const fields::PointNodes points(make_grid(everywhere, 1));
  const double speed[] = {1, 2, 1.2, 0.9};
  auto partition = cuda::first_partition(points.size(), 4);
  std::vector<double> seconds(4);
  for (int frame = 0; frame < 60; ++frame) {
    for (int rank = 0; rank < 4; ++rank) {
      seconds[rank] = 0;
      for (std::int64_t i = partition[rank].first; i < partition[rank].last; ++i)
        seconds[rank] += (i < points.size() / 2 ? 1 : 1.7) / speed[rank];
    }
    const auto before = std::exchange(partition, cuda::balanced(points, partition, seconds));
    expect_all_covered(partition, points.size());
    for (int rank = 1; rank < 4; ++rank)
      EXPECT_LE(std::abs(partition[rank].first - before[rank].first), 100 * (cuda::kLargestMove + 1));
  }
  const auto [least, most] = std::ranges::minmax(seconds);
  EXPECT_LT(most, 1.01 * least);
}

TEST(Partition, StayWhereNothingIsKnown) {
  Image everywhere({100, 40}, ScalarType::u8);
  for (int y = 0; y < 40; ++y) std::fill_n(everywhere.row<std::uint8_t>(y), 100, 255);
  const fields::PointNodes points(make_grid(everywhere, 1));
  const auto partition = cuda::first_partition(points.size(), 2);
  EXPECT_EQ(cuda::balanced(points, partition, {0, 1})[0].last, partition[0].last);
  EXPECT_EQ(cuda::balanced(points, {{0, 0}, {0, 4000}}, {1, 1})[0].last, 0);
}

TEST(Partition, KnowTheRowsAroundThem) {
  Image roi({50, 60}, ScalarType::u8);
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 50; ++x) roi.row<std::uint8_t>(y)[x] = x + y > 70 ? 0 : 255;
  const fields::PointNodes points(make_grid(roi, 1));
  const auto row_of = [&](std::int64_t point) { return points.node_of[point] / points.grid.nx; };
  constexpr int reach = kIslandReach + cuda::kLargestMove;
  for (const PointRange own : {PointRange{0, 17}, {1000, 1020}, {700, 1555}, {9, 9}}) {
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
