#include "core/thread_team.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace dic::core {
namespace {

/// Spins until the condition holds, but not much longer than sleeping and waking would take. Returns false if
/// the condition does not hold by then.
template <typename Condition>
bool spin_until(const Condition& condition) {
  constexpr std::chrono::microseconds longest(300);
  const auto end = std::chrono::steady_clock::now() + longest;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

ThreadTeam::ThreadTeam(int size) : size_(size) {
  try {
    for (int rank = 1; rank < size; ++rank) others_.emplace_back([this, rank] { serve(rank); });
  } catch (...) {
    end();
    throw;
  }
}

ThreadTeam::~ThreadTeam() { end(); }

void ThreadTeam::end() {
  over_ = true;
  ++runs_;
  runs_.notify_all();
  for (std::thread& other : others_) other.join();
}

void ThreadTeam::serve(int rank) {
  for (unsigned seen = 0;; ++seen) {
    if (!spin_until([&] { return runs_ != seen; })) runs_.wait(seen);
    if (over_) return;
    do_part(rank);
    if (--working_ == 0) working_.notify_one();
  }
}

void ThreadTeam::run(const std::function<void(int)>& body) {
  body_ = &body;
  sums_[0] = sums_[1] = 0;
  barriers_ = 0;
  arrived_ = 0;
  failed_ = false;
  failure_ = nullptr;
  working_ = size_ - 1;
  ++runs_;
  runs_.notify_all();
  do_part(0);
  while (const int left = working_)
    if (!spin_until([&] { return working_ == 0; })) working_.wait(left);
  if (failed_) rethrow_failure();
}

void ThreadTeam::do_part(int rank) {
  try {
    (*body_)(rank);
  } catch (...) {
    fail(std::current_exception());
  }
}

std::int64_t ThreadTeam::sum(std::int64_t own) {
  const unsigned barrier = barriers_;
  std::atomic<std::int64_t>& total = sums_[barrier % 2];
  total += own;
  if (++arrived_ == size_) {
    sums_[(barrier + 1) % 2] = 0;  // all ranks have read this sum of the previous barrier
    arrived_ = 0;
    ++barriers_;
  }
  while (barriers_ == barrier) {
    if (failed_) rethrow_failure();
    std::this_thread::yield();  // waits only microseconds, because all GPUs have the same amount of work
  }
  return total;
}

void ThreadTeam::fail(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
  failed_ = true;
}

void ThreadTeam::rethrow_failure() {
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

}  // namespace dic::core
