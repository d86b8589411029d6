#include "core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/make_room.hpp"

namespace dic {

struct ThreadPool::Impl {
  std::mutex mutex;
  std::condition_variable wake, idle;
  std::uint64_t generation = 0;  // number of loops so far
  int running = 0;               // workers in the current loop
  bool open = false;             // the current loop still takes workers
  bool quit = false;

  const std::function<void(std::int64_t, std::int64_t, int)>* body = nullptr;
  std::int64_t n = 0, grain = 1;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::vector<std::jthread> workers;

  void work(int worker) {
    for (;;) {
      const std::int64_t begin = next.fetch_add(grain);
      if (begin >= n) return;
      make_room_in_memory();
      try {
        (*body)(begin, std::min(begin + grain, n), worker);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = n;
      }
    }
  }

  void wait_for_loops(int worker) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return quit || generation != seen; });
      if (quit) return;
      seen = generation;
      if (!open) continue;  // the loop ended before this worker woke up
      ++running;
      lock.unlock();
      work(worker);
      lock.lock();
      if (--running == 0) idle.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  if (threads <= 0) threads = std::max(1u, std::thread::hardware_concurrency());
  try {
    for (int worker = 1; worker < threads; ++worker)
      impl_->workers.emplace_back([impl = impl_.get(), worker] { impl->wait_for_loops(worker); });
  } catch (
      ...) {  // the system starts no more threads: the waiting ones must end, or joining them never returns
    end();
    throw;
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->quit = true;
  }
  impl_->wake.notify_all();
}

int ThreadPool::size() const { return static_cast<int>(impl_->workers.size()) + 1; }

void ThreadPool::parallel_for(std::int64_t n, std::int64_t grain,
                              const std::function<void(std::int64_t, std::int64_t, int)>& body) {
  if (n <= 0) return;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->body = &body;
    impl_->n = n;
    impl_->grain = std::max<std::int64_t>(1, grain);
    impl_->next = 0;
    impl_->failure = nullptr;
    impl_->open = true;
    ++impl_->generation;
  }
  impl_->wake.notify_all();
  impl_->work(0);
  std::unique_lock lock(impl_->mutex);
  impl_->open = false;  // all work is handed out: do not wait for workers that still sleep
  impl_->idle.wait(lock, [&] { return impl_->running == 0; });
  if (impl_->failure) std::rethrow_exception(impl_->failure);
}

}  // namespace dic
