#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace dic {

/// Threads that wait for loops. Owned by the object that does the work: there is no global pool.
class ThreadPool {
 public:
  /// threads: 0 = one per core. The calling thread counts as one, so 1 starts none.
  /// Throws std::system_error where the system starts no more threads.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;

  /// Runs body(begin, end, worker) over [0, n) in chunks of `grain`, handed out in order to the next free
  /// worker; 0 <= worker < size() names the thread, for scratch memory. Returns when all is done. The first
  /// exception of a body ends the loop early and is thrown again here. Not reentrant.
  void parallel_for(std::int64_t n, std::int64_t grain,
                    const std::function<void(std::int64_t begin, std::int64_t end, int worker)>& body);

 private:
  void end();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic
