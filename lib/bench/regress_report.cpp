#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <nlohmann/json.hpp>

#include "bench/machine_json.hpp"
#include "bench/regress.hpp"
#include "bench/timing.hpp"

namespace dic::bench {
namespace {

constexpr double kLeastSeconds = 2e-3;  ///< shorter times are dominated by the clock's resolution
constexpr double kLeastChange = 0.01;
constexpr double kChance = 0.005;  ///< probability of the median lying beyond one end of its interval

/// A median and its confidence interval.
struct Middle {
  double median = 0, low = 0, high = 0;
};

/// Rank, from 0, of the lower end of the median's interval: the largest k with P(fewer than k + 1 of n values
/// below the median) <= kChance.
std::size_t low_rank(std::size_t n) {
  double term = std::pow(0.5, static_cast<double>(n)), sum = term;
  std::size_t rank = 0;
  while (true) {
    term *= static_cast<double>(n - rank) / static_cast<double>(rank + 1);
    if (sum + term > kChance) return rank;
    sum += term;
    ++rank;
  }
}

Middle middle_of(std::vector<double> values) {
  const double median = median_of(values);
  const std::size_t rank = low_rank(values.size());
  return {median, values[rank], values[values.size() - 1 - rank]};
}

Middle ratio_by_turns(const std::vector<double>& before, const std::vector<double>& now) {
  std::vector<double> ratios;
  for (std::size_t turn = 0; turn < std::min(before.size(), now.size()); ++turn)
    ratios.push_back(now[turn] / before[turn]);
  return middle_of(ratios);
}

Middle ratio_of_medians(const std::vector<double>& before, const std::vector<double>& now) {
  const Middle a = middle_of(before), b = middle_of(now);
  return {b.median / a.median, b.low / a.high, b.high / a.low};
}

Change change_of(const Middle& ratio) {
  if (ratio.low > 1 && ratio.median > 1 + kLeastChange) return Change::slower;
  if (ratio.high < 1 && ratio.median < 1 - kLeastChange) return Change::faster;
  return Change::same;
}

Comparison compared(const CommandTimes& before, const CommandTimes& now, bool by_turns) {
  const Middle ratio =
      by_turns ? ratio_by_turns(before.values, now.values) : ratio_of_medians(before.values, now.values);
  return {.command = now.command,
          .measure = now.measure,
          .before = middle_of(before.values).median,
          .now = middle_of(now.values).median,
          .ratio = ratio.median,
          .low = ratio.low,
          .high = ratio.high,
          .change = change_of(ratio)};
}

}  // namespace

std::vector<Comparison> compare(const SpeedReport& before, const SpeedReport& now, bool by_turns) {
  std::vector<Comparison> rows;
  for (const CommandTimes& times : now.times) {
    const auto same = [&](const CommandTimes& other) {
      return other.command == times.command && other.measure == times.measure;
    };
    const auto earlier = std::find_if(before.times.begin(), before.times.end(), same);
    if (earlier == before.times.end() || earlier->values.empty() || times.values.empty()) continue;
    const Comparison row = compared(*earlier, times, by_turns);
    if (std::max(row.before, row.now) >= kLeastSeconds) rows.push_back(row);
  }
  return rows;
}

std::string to_json(const SpeedReport& report) {
  nlohmann::ordered_json json{{"machine", json_of(report.machine)},
                              {"times", nlohmann::ordered_json::array()}};
  for (const CommandTimes& times : report.times)
    json["times"].push_back(
        {{"command", times.command}, {"measure", times.measure}, {"seconds", times.values}});
  return json.dump(2) + "\n";
}

SpeedReport speed_report_from_json(const std::string& text) {
  try {
    const auto json = nlohmann::ordered_json::parse(text);
    SpeedReport report{.machine = machine_from(json.at("machine")), .times = {}};
    for (const auto& times : json.at("times"))
      report.times.push_back({times.at("command"), times.at("measure"), times.at("seconds")});
    return report;
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(std::string("This is no report of dic bench regress: ") + error.what());
  }
}

}  // namespace dic::bench
