#pragma once

#include <algorithm>
#include <chrono>
#include <dic/kernels/device.hpp>
#include <vector>

namespace dic::test {

/// Median seconds of one launch: launches are queued in groups that take at least a millisecond.
template <typename Launch>
double median_seconds(const kernels::Stream& stream, Launch&& launch) {
  using Clock = std::chrono::steady_clock;
  const auto timed = [&](int launches) {
    const auto start = Clock::now();
    for (int i = 0; i < launches; ++i) launch();
    stream.synchronize("timing");
    return std::chrono::duration<double>(Clock::now() - start).count() / launches;
  };
  timed(1);
  const int launches = std::clamp(static_cast<int>(2e-3 / timed(1)), 1, 1000);
  std::vector<double> seconds;
  for (int repeat = 0; repeat < 5; ++repeat) seconds.push_back(timed(launches));
  std::nth_element(seconds.begin(), seconds.begin() + 2, seconds.end());
  return seconds[2];
}

}  // namespace dic::test
