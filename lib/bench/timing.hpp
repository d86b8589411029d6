#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "bench/bench.hpp"

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

/// Seconds that some iterations took together.
struct Elapsed {
  double counted = 0;  ///< seconds to report
  double lasted = 0;   ///< seconds to compare with the shortest time of a repeat
};

/// Runs `once()` repeatedly. It returns the seconds to report for an iteration; the total duration is
/// measured by the clock.
template <typename Once>
auto one_by_one(const Once& once) {
  return [once](std::int64_t iterations) {
    Elapsed elapsed;
    elapsed.lasted = time_of([&] {
      for (std::int64_t i = 0; i < iterations; ++i) elapsed.counted += once();
    });
    return elapsed;
  };
}

/// Times repeats, at least one, until the longest time is over or `stop` is set; each repeat has enough
/// iterations to last the shortest time. `run(n)` does n iterations and returns their Elapsed. The caller has
/// run it before (warm-up) and sets `first`.
template <typename Run>
Timing time_repeats(const Run& run, const Options& options, const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  const auto time_is_left = [&] {
    return seconds_since(start) < options.max_seconds && !stop.stop_requested();
  };
  std::int64_t iterations = 1;
  Elapsed elapsed = run(iterations);
  while (elapsed.lasted < options.min_seconds && time_is_left()) {
    const double more = std::clamp(1.2 * options.min_seconds / elapsed.lasted, 2.0, 1000.0);
    iterations = static_cast<std::int64_t>(std::ceil(more * static_cast<double>(iterations)));
    elapsed = run(iterations);
  }
  std::vector<double> seconds{elapsed.counted};
  while (static_cast<int>(seconds.size()) < options.repeats && time_is_left())
    seconds.push_back(run(iterations).counted);
  for (double& s : seconds) s /= static_cast<double>(iterations);
  Timing timing;
  timing.iterations = iterations;
  timing.repeats = static_cast<int>(seconds.size());
  timing.median = median_of(seconds);
  timing.least = seconds.front();
  timing.most = seconds.back();
  return timing;
}

}  // namespace dic::bench
