#include "core/crew.hpp"

#include <thread>
#include <utility>

namespace dic {

void Crew::run(const std::function<void(int)>& body) {
  sums_[0] = sums_[1] = 0;
  meetings_ = 0;
  arrived_ = 0;
  failed_ = false;
  failure_ = nullptr;
  // A thread that is done could take a second rank only before that one has started: ranks that meet cannot
  // be done then, and ranks that do not meet need not run at once.
  threads_.parallel_for(size_, 1, [&](std::int64_t rank, std::int64_t, int) {
    try {
      body(static_cast<int>(rank));
    } catch (...) {
      fail(std::current_exception());
      rethrow_failure();
    }
  });
}

std::int64_t Crew::sum(std::int64_t own) {
  const unsigned meeting = meetings_;
  std::atomic<std::int64_t>& total = sums_[meeting % 2];
  total += own;
  if (++arrived_ == size_) {
    sums_[(meeting + 1) % 2] = 0;  // of the meeting before: all have read it
    arrived_ = 0;
    ++meetings_;
  }
  while (meetings_ == meeting) {
    if (failed_) rethrow_failure();
    std::this_thread::yield();  // microseconds: GPUs have equal shares
  }
  return total;
}

void Crew::fail(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
  failed_ = true;
}

void Crew::rethrow_failure() {
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

}  // namespace dic
