#include <gtest/gtest.h>

#include <cmath>
#include <dic/error.hpp>
#include <random>

#include "bench/regress.hpp"

// Tests the comparison of times with a known difference.
namespace dic::bench {
namespace {

/// Log-normal times around a true time.
class Clock {
 public:
  explicit Clock(unsigned seed) : random_(seed) {}

  SpeedReport report(double seconds, int turns, double noise) {
    SpeedReport out;
    CommandTimes times{"command", "wall", {}};
    for (int turn = 0; turn < turns; ++turn)
      times.values.push_back(seconds * std::exp(noise * normal_(random_)));
    out.times.push_back(times);
    return out;
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
};

int count(Change change, double ratio, double noise, bool by_turns) {
  int found = 0;
  for (unsigned trial = 0; trial < 400; ++trial) {
    Clock clock(trial);
    const SpeedReport before = clock.report(0.1, 12, noise), now = clock.report(0.1 * ratio, 12, noise);
    found += compare(before, now, by_turns).at(0).change == change;
  }
  return found;
}

TEST(BenchRegress, EqualTimesAreRarelyCalledDifferent) {
  for (const bool by_turns : {true, false}) {
    EXPECT_LE(count(Change::slower, 1, 0.05, by_turns), 6) << "of 400, where 2 are expected";
    EXPECT_LE(count(Change::faster, 1, 0.05, by_turns), 6);
  }
}

TEST(BenchRegress, ADifferenceBeyondTheNoiseIsFound) {
  EXPECT_GE(count(Change::slower, 1.05, 0.01, true), 396);
  EXPECT_GE(count(Change::faster, 0.95, 0.01, true), 396);
  EXPECT_GE(count(Change::slower, 1.05, 0.01, false), 396);
}

TEST(BenchRegress, ADifferenceOfLessThanOnePercentDoesNotCount) {
  EXPECT_EQ(count(Change::same, 1.005, 1e-4, true), 400);
}

/// 12 values: P(at most one of 12 below the median) = 13 / 4096 = 0.3 %, two: 1.9 %. So the interval begins
/// at the second smallest value.
TEST(BenchRegress, TheIntervalLeavesOutOneValueOfTwelveAtEachEnd) {
  SpeedReport before, now;
  before.times.push_back({"c", "wall", std::vector<double>(12, 1)});
  now.times.push_back({"c", "wall", {12, 1, 11, 2, 10, 3, 9, 4, 8, 5, 7, 6}});
  const Comparison row = compare(before, now, true).at(0);
  EXPECT_EQ(row.low, 2);
  EXPECT_EQ(row.high, 11);
  EXPECT_EQ(row.ratio, 6.5);
}

TEST(BenchRegress, ShortTimesAndRowsOfOneReportAreLeftOut) {
  SpeedReport before, now;
  before.times = {{"c", "wall", std::vector<double>(8, 1e-3)}, {"gone", "wall", std::vector<double>(8, 1)}};
  now.times = {{"c", "wall", std::vector<double>(8, 1.5e-3)}, {"new", "wall", std::vector<double>(8, 1)}};
  EXPECT_TRUE(compare(before, now, true).empty());
}

TEST(BenchRegress, JsonKeepsEverything) {
  SpeedReport report = Clock(1).report(0.1, 8, 0.1);
  report.machine.model = "a processor";
  report.machine.threads = 7;
  const SpeedReport read = speed_report_from_json(to_json(report));
  EXPECT_EQ(read.machine.model, "a processor");
  EXPECT_EQ(read.machine.threads, 7);
  ASSERT_EQ(read.times.size(), 1U);
  EXPECT_EQ(read.times[0].command, "command");
  EXPECT_EQ(read.times[0].values, report.times[0].values);
  EXPECT_THROW(speed_report_from_json("{}"), UsageError);
  EXPECT_THROW(speed_report_from_json("no json"), UsageError);
}

TEST(BenchRegress, OptionsAreChecked) {
  EXPECT_TRUE(RegressOptions{}.validate().empty());
  const RegressOptions wrong = {.device = "cuda:7", .threads = -1, .turns = 7, .images = {}, .only = {}};
  EXPECT_EQ(wrong.validate().size(), 3U);
}

}  // namespace
}  // namespace dic::bench
