#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/export.hpp>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

namespace dic {

/// Threads that wait for loops to run. The object that does the work owns its pool; there is no global pool.
class ThreadPool {
 public:
  /// threads: 0 = one per core. The calling thread is one of them, so 1 starts no thread.
  /// Throws std::system_error if the system starts no more threads.
  DIC_INTERNAL_API explicit ThreadPool(int threads = 0);
  DIC_INTERNAL_API ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  DIC_INTERNAL_API int size() const;

  /// Runs body(begin, end, worker) over [0, n) in chunks of `grain`, handed out in order to the next free
  /// worker; 0 <= worker < size() names the thread, for scratch memory. Returns when all is done. The first
  /// exception of a body ends the loop early and is thrown again here. Not reentrant.
  DIC_INTERNAL_API void parallel_for(
      std::int64_t n, std::int64_t grain,
      const std::function<void(std::int64_t begin, std::int64_t end, int worker)>& body);

 private:
  void end();
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

}  // namespace dic
