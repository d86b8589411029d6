#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/export.hpp>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

namespace dic::core {

/// Threads that share the work of loops. Each object that users create (Tracker, Matcher, Correlator, ...)
/// and each job owns one pool and hands it down; there is no global pool, and nothing else creates one
/// (tests/unit/check_thread_pools.py).
///
/// Several threads may run loops at the same time, and the body of a loop may run another one: a free thread
/// of the pool joins the loop with the fewest helpers. As each caller runs chunks of its own loop, a loop
/// never waits for another loop to end.
class ThreadPool {
 public:
  /// threads: that work on a loop, including the one that calls; 0 = one per core. The others start with the
  /// first loop that they can help with.
  DIC_INTERNAL_API explicit ThreadPool(int threads = 0);
  /// No loop may run.
  DIC_INTERNAL_API ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  DIC_INTERNAL_API int size() const;

  /// Runs body(begin, end, worker) over [0, n) in chunks of `grain`, handed out in order to the next free
  /// thread. 0 <= worker < size() names the thread within this loop, for scratch memory; the caller is 0.
  /// Returns when all is done. The first exception of a body ends the loop early and is thrown again here.
  /// most_threads: that work on this loop; 0 = as many as the pool has. Throws std::system_error if the
  /// system starts no more threads.
  DIC_INTERNAL_API void parallel_for(
      std::int64_t n, std::int64_t grain,
      const std::function<void(std::int64_t begin, std::int64_t end, int worker)>& body,
      int most_threads = 0);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Calls body(i) for 0 <= i < n, for bodies that take less than a microsecond.
template <typename Body>
void for_each_index(ThreadPool& pool, std::int64_t n, const Body& body) {
  constexpr std::int64_t grain = 1024;
  const auto some = [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  };
  if (n <= grain) return some(0, n, 0);  // sharing so few is not worth it
  pool.parallel_for(n, grain, some);
}

/// Calls body(row) for all rows of an image.
template <typename Body>
void for_each_row(ThreadPool& pool, int rows, const Body& body) {
  constexpr std::int64_t grain = 16;
  pool.parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) body(static_cast<int>(row));
  });
}

/// All i with 0 <= i < n for which condition(i) holds, in ascending order.
template <typename Condition>
std::vector<std::int64_t> indices_where(ThreadPool& pool, std::int64_t n, const Condition& condition) {
  constexpr std::int64_t grain = 4096;
  std::vector<std::vector<std::int64_t>> parts((n + grain - 1) / grain);
  pool.parallel_for(std::ssize(parts), 1, [&](std::int64_t part, std::int64_t, int) {
    for (std::int64_t i = part * grain; i < std::min(n, (part + 1) * grain); ++i)
      if (condition(i)) parts[part].push_back(i);
  });
  std::vector<std::int64_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// The number of i with 0 <= i < n for which condition(i) holds.
template <typename Condition>
std::int64_t count_where(ThreadPool& pool, std::int64_t n, const Condition& condition) {
  constexpr std::int64_t grain = 4096;
  std::vector<std::int64_t> parts((n + grain - 1) / grain);
  pool.parallel_for(std::ssize(parts), 1, [&](std::int64_t part, std::int64_t, int) {
    for (std::int64_t i = part * grain; i < std::min(n, (part + 1) * grain); ++i) parts[part] += condition(i);
  });
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

}  // namespace dic::core
