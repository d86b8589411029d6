#include "core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/make_room.hpp"

namespace dic::core {
namespace {

/// A loop that is running. It lives on the stack of the thread that called parallel_for().
struct Loop {
  const std::function<void(std::int64_t, std::int64_t, int)>& body;
  const std::int64_t n, grain;
  const int most_helpers;
  std::atomic<std::int64_t> next{0};

  // Guarded by the mutex of the pool:
  int helpers = 0;                       // threads of the pool that run chunks of this loop
  std::exception_ptr failure = nullptr;  // the first exception of a body
  std::condition_variable ended = {};    // no helper is left

  bool has_chunk() const { return next < n; }

  /// Runs the next chunk. Returns false if all are handed out.
  bool run_chunk(int worker) {
    const std::int64_t begin = next.fetch_add(grain);
    if (begin >= n) return false;
    make_room_in_memory();
    body(begin, std::min(begin + grain, n), worker);
    return true;
  }
};

}  // namespace

struct ThreadPool::Impl {
  const int size;
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<Loop*> open;  // loops that may have chunks left, the oldest first
  bool quit = false;
  std::vector<std::jthread> threads;  // none until the first loop that they can help with

  explicit Impl(int requested)
      : size(requested > 0 ? requested : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))) {
  }

  void start_threads() {
    while (std::ssize(threads) + 1 < size) {
      const int worker = static_cast<int>(threads.size()) + 1;
      threads.emplace_back([this, worker] { help(worker); });
    }
  }

  /// Runs chunks until none is left. After a failure no more chunks are handed out.
  void work(Loop& loop, int worker) {
    try {
      while (loop.run_chunk(worker)) {
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!loop.failure) loop.failure = std::current_exception();
      loop.next = loop.n;
    }
  }

  /// The open loop with the fewest helpers; null if no loop needs one.
  Loop* neediest() {
    std::erase_if(open, [](const Loop* loop) { return !loop->has_chunk(); });
    Loop* least = nullptr;
    for (Loop* loop : open)
      if (loop->helpers < loop->most_helpers && (!least || loop->helpers < least->helpers)) least = loop;
    return least;
  }

  void help(int worker) {
    std::unique_lock lock(mutex);
    for (;;) {
      Loop* loop = nullptr;
      wake.wait(lock, [&] { return quit || (loop = neediest()) != nullptr; });
      if (quit) return;
      ++loop->helpers;
      lock.unlock();
      work(*loop, worker);
      lock.lock();
      if (--loop->helpers == 0) loop->ended.notify_one();  // under the lock: `loop` ends with the wait
    }
  }

  /// Wakes as many sleeping threads as a loop needs. Threads that are awake find the loop by themselves.
  void wake_threads(int count) {
    if (count == size - 1) return wake.notify_all();
    for (; count > 0; --count) wake.notify_one();
  }

  /// Runs a loop in the calling thread and in those of the pool that are free.
  void run(Loop& loop) {
    {
      const std::lock_guard lock(mutex);
      start_threads();
      open.push_back(&loop);
    }
    wake_threads(loop.most_helpers);
    work(loop, 0);
    std::unique_lock lock(mutex);
    std::erase(open, &loop);  // threads that still sleep are not waited for
    loop.ended.wait(lock, [&] { return loop.helpers == 0; });
    if (loop.failure) std::rethrow_exception(loop.failure);
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>(threads)) {}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->quit = true;
  }
  impl_->wake.notify_all();
}

int ThreadPool::size() const { return impl_->size; }

void ThreadPool::parallel_for(std::int64_t n, std::int64_t grain,
                              const std::function<void(std::int64_t, std::int64_t, int)>& body,
                              int most_threads) {
  grain = std::max<std::int64_t>(1, grain);
  const int threads = most_threads > 0 ? std::min(most_threads, size()) : size();
  const std::int64_t chunks = n / grain + (n % grain > 0 ? 1 : 0);
  Loop loop{.body = body,
            .n = n,
            .grain = grain,
            .most_helpers = static_cast<int>(std::min<std::int64_t>(threads, chunks)) - 1};
  if (loop.most_helpers > 0) return impl_->run(loop);
  while (loop.run_chunk(0)) {
  }
}

}  // namespace dic::core
