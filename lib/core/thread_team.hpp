#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dic::core {

/// Threads that take the same steps at the same time, one for each GPU. Between closely spaced runs they spin
/// instead of sleeping, because waking a thread takes longer than many of the steps.
class ThreadTeam {
 public:
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Runs body(rank) for all ranks 0 .. size - 1 in parallel, rank 0 in the calling thread. If one throws,
  /// the others stop at their next barrier, and the first exception is thrown again here.
  void run(const std::function<void(int rank)>& body);

  /// The sum of `own` over all ranks. This is a barrier: within `run`, each rank must call it equally often.
  std::int64_t sum(std::int64_t own);
  /// Waits for all ranks. Everything that they wrote before is then visible to all of them.
  void barrier() { sum(0); }

 private:
  void end();
  void serve(int rank);
  void do_part(int rank);
  void fail(std::exception_ptr failure);
  void rethrow_failure();

  const int size_;
  const std::function<void(int)>* body_ = nullptr;
  std::atomic<unsigned> runs_ = 0;  ///< number of runs begun so far
  std::atomic<int> working_ = 0;    ///< ranks other than 0 that have not finished this run
  std::atomic<bool> over_ = false;
  std::atomic<std::int64_t> sums_[2];   ///< the sums of this barrier and of the next
  std::atomic<unsigned> barriers_ = 0;  ///< number of barriers of this run that all ranks have reached
  std::atomic<int> arrived_ = 0;        ///< number of ranks at this barrier
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;  ///< the first exception of this run
  std::vector<std::thread> others_;
};

}  // namespace dic::core
