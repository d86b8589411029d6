#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <dic/error.hpp>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "track/stopwatch.hpp"

namespace dic::track {

/// An image, or the images of a pair, on the way through a stream.
template <typename StreamResult>
struct InFlight {
  StreamResult result;
  Stopwatch since_push;
};

/// The pipeline of TrackStream and StereoStream: one thread measures what was pushed, in order; another
/// fetches the results and keeps them for poll() and wait(), or passes them to a callback.
///
/// A UsageError of a step concerns its item only and becomes the error of its result; Cancelled drops the
/// item; any other exception ends the experiment, and push, wait and finish throw it until reset().
///
/// Item: derived from InFlight of a result with index, error and latency.
template <typename Item>
class ResultStream {
 public:
  using Result = decltype(Item::result);
  using Lock = std::unique_lock<std::mutex>;
  using Step = std::function<void(Item&)>;

  struct Steps {
    std::function<void(Item&, const std::stop_token&)> measure;
    std::function<void()> measured;  ///< called with the lock after each measurement
    Step fetch;                      ///< completes the result, on the other thread
  };

  /// capacity: number of items that may be inside, at least 1. images: what an item is, for messages. Without
  /// a callback, results wait to be taken. `steps` must be usable until the stream ends.
  ResultStream(Steps steps, std::function<void(Result)> callback, int capacity, const std::string& images)
      : steps_(std::move(steps)), callback_(std::move(callback)), capacity_(capacity) {
    if (capacity < 1)
      throw UsageError("A stream needs room for a " + images + ": choose a capacity of at least 1.");
    try {
      measurer_ = std::thread([this] { measure_items(); });
      deliverer_ = std::thread([this] { deliver_results(); });
    } catch (...) {
      end();
      throw;
    }
  }
  ~ResultStream() { end(); }
  ResultStream(const ResultStream&) = delete;
  ResultStream& operator=(const ResultStream&) = delete;

  /// Protects what the steps share with other calls.
  Lock lock() const { return Lock(mutex_); }
  /// The item that is measured next, if it was pushed already. The lock must be held.
  const Item* next() const { return waiting_.empty() ? nullptr : &waiting_.front(); }

  /// Waits for room. check: throws if nothing may be pushed; called with the lock. take: fills the item.
  std::int64_t push(const std::function<void()>& check, const Step& take) {
    const std::lock_guard one_at_a_time(pushing_);
    Lock lock(mutex_);
    changed_.wait(lock, [&] { return has_room(); });
    return add(lock, check, take);
  }

  std::optional<std::int64_t> try_push(const std::function<void()>& check, const Step& take) {
    // If another thread is pushing, it takes the free place or waits for one; this call waits for neither.
    const Lock one_at_a_time(pushing_, std::try_to_lock);
    if (!one_at_a_time) return std::nullopt;
    Lock lock(mutex_);
    if (!has_room()) return std::nullopt;
    return add(lock, check, take);
  }

  std::optional<Result> poll() {
    const std::lock_guard lock(mutex_);
    if (results_.empty()) return std::nullopt;
    return take_result();
  }

  std::optional<Result> wait() {
    Lock lock(mutex_);
    changed_.wait(lock, [&] { return !results_.empty() || inside_ == 0; });
    if (!results_.empty()) return take_result();
    rethrow_failure();
    return std::nullopt;
  }

  void finish() {
    Lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ == std::ssize(results_); });
    rethrow_failure();
  }

  void cancel() {
    const std::lock_guard lock(mutex_);
    forget_waiting();
    std::exchange(cancelling_, std::stop_source()).request_stop();
  }

  /// Cancels, drops all results, and calls `rebuild` with the lock while nothing is measured.
  void reset(const std::function<void()>& rebuild) {
    abandon();
    const std::lock_guard one_at_a_time(pushing_);
    abandon();
    Lock lock(mutex_);
    changed_.wait(lock, [&] { return !is_measuring_ && !is_delivering_; });
    measured_.clear();
    results_.clear();
    inside_ = 0;
    next_index_ = 0;
    failure_ = nullptr;
    rebuild();
  }

 private:
  static Item pop(std::deque<Item>& queue) {
    Item first = std::move(queue.front());
    queue.pop_front();
    return first;
  }

  void end() {
    cancel();
    {
      const std::lock_guard lock(mutex_);
      is_closing_ = true;
    }
    changed_.notify_all();
    for (std::thread* thread : {&measurer_, &deliverer_})
      if (thread->joinable()) thread->join();
  }

  // ---- Items that are dropped; the caller holds the lock ----

  void leave(std::size_t items) {
    inside_ -= static_cast<int>(items);
    changed_.notify_all();
  }
  void forget_waiting() {
    leave(waiting_.size());
    waiting_.clear();
  }
  void fail(std::exception_ptr error) {
    if (!failure_) failure_ = std::move(error);
    forget_waiting();
  }
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  /// Does a step of an item without the lock. Returns false if the item must be dropped.
  template <typename Do>
  bool advance(Lock& lock, Item& item, const Do& step) {
    lock.unlock();
    std::exception_ptr failed;
    bool goes_on = true;
    try {
      step(item);
    } catch (const Cancelled&) {
      goes_on = false;
    } catch (const UsageError& e) {
      item.result.error = e.what();
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    if (failed) fail(failed);
    if (goes_on && !failed) return true;
    leave(1);
    return false;
  }

  // ---- Pushing ----

  bool has_room() const { return inside_ < capacity_ || failure_; }

  std::int64_t add(Lock& lock, const std::function<void()>& check, const Step& take) {
    rethrow_failure();
    check();
    ++inside_;
    Item item;
    item.result.index = next_index_++;
    const std::int64_t index = item.result.index;
    if (advance(lock, item, take)) waiting_.push_back(std::move(item));
    rethrow_failure();
    changed_.notify_all();
    return index;
  }

  // ---- Measuring ----

  void measure_items() {
    Lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_closing_ || !waiting_.empty(); });
      if (is_closing_) return;
      Item item = pop(waiting_);
      is_measuring_ = true;
      const bool goes_on =
          advance(lock, item, [this, token = cancelling_.get_token()](Item& it) { measure(it, token); });
      is_measuring_ = false;
      steps_.measured();
      if (goes_on) measured_.push_back(std::move(item));
      changed_.notify_all();
    }
  }

  void measure(Item& item, const std::stop_token& token) {
    if (!item.result.error.empty()) return;
    steps_.measure(item, token);
    if (token.stop_requested()) throw Cancelled("The measurement was cancelled.");
  }

  void deliver_results() {
    Lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_closing_ || !measured_.empty(); });
      if (is_closing_) return;
      Item item = pop(measured_);
      is_delivering_ = true;
      if (advance(lock, item, steps_.fetch)) deliver(lock, item);
      is_delivering_ = false;
      changed_.notify_all();
    }
  }

  void deliver(Lock& lock, Item& item) {
    item.result.latency = item.since_push.seconds();
    if (!callback_) {
      results_.push_back(std::move(item.result));
      return;
    }
    lock.unlock();
    std::exception_ptr failed;
    try {
      callback_(std::move(item.result));
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    if (failed) fail(failed);
    leave(1);
  }

  // ---- Handing out results; the caller holds the lock ----

  Result take_result() {
    Result first = std::move(results_.front());
    results_.pop_front();
    leave(1);
    return first;
  }

  /// Cancels, and wakes a push that waits for room.
  void abandon() {
    cancel();
    const std::lock_guard lock(mutex_);
    leave(results_.size());
    results_.clear();
  }

  const Steps steps_;
  const std::function<void(Result)> callback_;
  const int capacity_;

  std::mutex pushing_;  ///< serializes pushes and resets; locked before `mutex_`

  mutable std::mutex mutex_;  ///< protects all following members
  std::condition_variable changed_;
  std::deque<Item> waiting_, measured_;
  std::deque<Result> results_;
  int inside_ = 0;  ///< number of items pushed whose result was not handed out
  std::int64_t next_index_ = 0;
  std::stop_source cancelling_;
  std::exception_ptr failure_;  ///< exception that ended the experiment
  bool is_measuring_ = false, is_delivering_ = false, is_closing_ = false;

  std::thread measurer_, deliverer_;
};

}  // namespace dic::track
