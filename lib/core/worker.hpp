#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace dic::core {

/// A thread that runs tasks one after the other, in the order in which they were submitted.
class Worker {
 public:
  Worker() : thread_([this] { work(); }) {}
  /// Waits until all submitted tasks have run.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Queues a task. The future is ready when the task is done, and rethrows the task's exception.
  std::future<void> submit(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::packaged_task<void()>> tasks_;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace dic::core
