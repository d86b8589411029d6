#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dic {

/// Threads that take the same steps at the same time, one for each GPU. Between runs that follow each other
/// closely they stay awake: to be woken takes longer than many a step.
class ThreadTeam {
 public:
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Runs body(rank) for every rank 0 .. size - 1, all at once; rank 0 in the calling thread. Throws what the
  /// first body threw that failed: then the others are stopped where they meet next.
  void run(const std::function<void(int rank)>& body);

  /// The sum of what the ranks bring. Waits for all of them: within `run`, each calls it equally often.
  std::int64_t sum(std::int64_t own);
  /// Waits for all ranks: what they wrote before is seen by all.
  void barrier() { sum(0); }

 private:
  void serve(int rank);
  void do_part(int rank);
  void fail(std::exception_ptr failure);
  void rethrow_failure();

  const int size_;
  const std::function<void(int)>* body_ = nullptr;
  std::atomic<unsigned> runs_ = 0;  ///< that were begun
  std::atomic<int> working_ = 0;    ///< ranks but the first that have not finished this run
  std::atomic<bool> over_ = false;
  std::atomic<std::int64_t> sums_[2];   ///< of this meeting, and of the next
  std::atomic<unsigned> meetings_ = 0;  ///< of this run that are over
  std::atomic<int> arrived_ = 0;        ///< at this meeting
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;  ///< the first
  std::vector<std::thread> others_;
};

}  // namespace dic
