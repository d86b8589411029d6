#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

#include "core/parallel.hpp"

namespace dic {

/// Threads that take the same steps at the same time, one for each GPU.
class Crew {
 public:
  explicit Crew(int size) : size_(size), threads_(size) {}

  /// Runs body(rank) for every rank 0 .. size - 1, all at once; rank 0 in the calling thread where nothing
  /// hinders. Throws what the first body threw that failed: then the others are stopped where they meet next.
  void run(const std::function<void(int rank)>& body);

  /// The sum of what the ranks bring. Waits for all of them: within `run`, each calls it equally often.
  std::int64_t sum(std::int64_t own);
  /// Waits for all ranks: what they wrote before is seen by all.
  void meet() { sum(0); }

 private:
  void fail(std::exception_ptr failure);
  void rethrow_failure();

  const int size_;
  ThreadPool threads_;
  std::atomic<std::int64_t> sums_[2];  ///< of this meeting, and of the next
  std::atomic<unsigned> meetings_;     ///< that are over
  std::atomic<int> arrived_;           ///< at this meeting
  std::atomic<bool> failed_;
  std::mutex mutex_;
  std::exception_ptr failure_;  ///< the first
};

}  // namespace dic
