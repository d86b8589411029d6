#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <dic/bench.hpp>
#include <vector>

namespace dic::bench {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Seconds that `once` takes.
template <typename Once>
double time_of(const Once& once) {
  const auto start = std::chrono::steady_clock::now();
  once();
  return seconds_since(start);
}

/// The middle of the values (of an even number: the mean of the two), which is reordered. Not empty.
inline double median_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Repeats of as many iterations as take the shortest time by the clock, as long as the longest time and
/// `stop` allow, at least one. `once()` gives the seconds of an iteration; what it does has been done before,
/// and `first` is left to the caller.
template <typename Once>
Timing time_repeats(const Once& once, const Options& options, const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  const auto time_is_left = [&] {
    return seconds_since(start) < options.max_seconds && !stop.stop_requested();
  };
  Timing timing;
  const auto repeat = [&] {
    double total = 0;
    for (std::int64_t i = 0; i < timing.iterations; ++i) total += once();
    return total / static_cast<double>(timing.iterations);
  };
  std::vector<double> seconds(1);
  const auto begin = [&](std::int64_t iterations) {
    timing.iterations = iterations;
    return time_of([&] { seconds[0] = repeat(); });
  };
  double elapsed = begin(1);
  while (elapsed < options.min_seconds && time_is_left()) {
    const double more = std::clamp(1.2 * options.min_seconds / elapsed, 2.0, 1000.0);
    elapsed = begin(static_cast<std::int64_t>(std::ceil(more * static_cast<double>(timing.iterations))));
  }
  while (static_cast<int>(seconds.size()) < options.repeats && time_is_left()) seconds.push_back(repeat());
  timing.repeats = static_cast<int>(seconds.size());
  timing.median = median_of(seconds);
  timing.least = seconds.front();
  timing.most = seconds.back();
  return timing;
}

}  // namespace dic::bench
