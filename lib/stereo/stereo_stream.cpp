#include <condition_variable>
#include <deque>
#include <dic/error.hpp>
#include <dic/stereo_stream.hpp>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "track/stopwatch.hpp"

namespace dic {
namespace {

/// A pair that waits to be measured.
struct PairInFlight {
  std::int64_t index = 0;
  track::Stopwatch since_push;
  Image left, right;
};

int checked(int capacity) {
  if (capacity < 1) throw UsageError("A stream needs room for a pair: choose a capacity of at least 1.");
  return capacity;
}

void check(ImageView view) {
  ImageView::of(view.data, view.type, view.size(), view.row_bytes, view.bit_depth);
}

}  // namespace

/// One thread measures the pairs. With a callback, another one passes the results to it.
struct StereoStream::Impl {
  using Lock = std::unique_lock<std::mutex>;

  const StereoOptions options;
  const CameraRig rig;
  const Callback callback;
  const int capacity;

  std::mutex pushing;  ///< serializes pushes and resets; locked before `mutex`

  mutable std::mutex mutex;  ///< protects all following members
  std::condition_variable changed;
  std::unique_ptr<StereoTracker> tracker;  ///< null after a reset that failed
  std::deque<PairInFlight> waiting;
  std::deque<StereoFrame> results;
  int inside = 0;  ///< number of pairs pushed whose result was not handed out
  std::int64_t next_index = 0;
  std::stop_source cancelling;
  std::exception_ptr failure;  ///< exception that ended the experiment
  std::vector<std::string> kernels;
  bool is_measuring = false, is_delivering = false, is_closing = false;

  std::thread measurer, deliverer;

  Impl(const StereoOptions& wanted, const CameraRig& cameras, ImageView left, ImageView right, const Roi& roi,
       Callback called, int room)
      : options(wanted),
        rig(cameras),
        callback(std::move(called)),
        capacity(checked(room)),
        tracker(std::make_unique<StereoTracker>(wanted, cameras, left, right, roi)),
        kernels(tracker->kernels()) {
    try {
      measurer = std::thread([this] { measure_pairs(); });
      if (callback) deliverer = std::thread([this] { deliver_results(); });
    } catch (...) {
      end();
      throw;
    }
  }

  ~Impl() { end(); }

  void end() {
    cancel();
    {
      const std::lock_guard lock(mutex);
      is_closing = true;
    }
    changed.notify_all();
    for (std::thread* thread : {&measurer, &deliverer})
      if (thread->joinable()) thread->join();
  }

  const StereoTracker& known_tracker() const {
    if (!tracker) throw UsageError("The stream has no references: reset it with a pair.");
    return *tracker;
  }

  // ---- Pairs that are dropped; the caller holds the lock ----

  void leave(std::size_t pairs) {
    inside -= static_cast<int>(pairs);
    changed.notify_all();
  }
  void forget_waiting() {
    leave(waiting.size());
    waiting.clear();
  }
  void fail(std::exception_ptr error) {
    if (!failure) failure = std::move(error);
    forget_waiting();
  }
  void rethrow_failure() const {
    if (failure) std::rethrow_exception(failure);
  }

  // ---- Pushing pairs ----

  bool has_room() const { return inside < capacity || failure; }

  /// Copies the images without the lock, which the measurement needs meanwhile.
  std::int64_t take(Lock& lock, ImageView left, ImageView right) {
    rethrow_failure();
    known_tracker();
    check(left), check(right);
    PairInFlight pair;
    pair.index = next_index++;
    const std::int64_t index = pair.index;
    ++inside;
    lock.unlock();
    std::exception_ptr failed;
    try {
      pair.left = copy_of(left), pair.right = copy_of(right);
    } catch (...) {  // no memory
      failed = std::current_exception();
    }
    lock.lock();
    if (failed) leave(1), std::rethrow_exception(failed);
    if (failure) leave(1), rethrow_failure();
    waiting.push_back(std::move(pair));
    changed.notify_all();
    return index;
  }

  std::int64_t push(ImageView left, ImageView right) {
    const std::lock_guard one_at_a_time(pushing);
    Lock lock(mutex);
    changed.wait(lock, [&] { return has_room(); });
    return take(lock, left, right);
  }

  std::optional<std::int64_t> try_push(ImageView left, ImageView right) {
    // If another thread is pushing, it takes the free place or waits for one; this call waits for neither.
    const Lock one_at_a_time(pushing, std::try_to_lock);
    if (!one_at_a_time) return std::nullopt;
    Lock lock(mutex);
    if (!has_room()) return std::nullopt;
    return take(lock, left, right);
  }

  // ---- Measuring ----

  void measure_pairs() {
    Lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return is_closing || !waiting.empty(); });
      if (is_closing) return;
      PairInFlight pair = std::move(waiting.front());
      waiting.pop_front();
      is_measuring = true;
      const std::stop_token token = cancelling.get_token();
      lock.unlock();
      std::optional<StereoFrame> frame;
      std::exception_ptr failed;
      try {
        frame = measured(pair, token);
      } catch (const Cancelled&) {  // yields no result
      } catch (...) {
        failed = std::current_exception();
      }
      lock.lock();
      is_measuring = false;
      kernels = tracker->kernels();
      if (failed) fail(failed);
      if (frame && !token.stop_requested())
        results.push_back(std::move(*frame));
      else
        leave(1);
      changed.notify_all();
    }
  }

  StereoFrame measured(const PairInFlight& pair, const std::stop_token& token) {
    StereoFrame frame;
    try {
      frame = tracker->track(pair.left, pair.right, token);
    } catch (const UsageError& problem) {  // concerns this pair only
      frame.error = problem.what();
    }
    frame.index = pair.index;
    frame.latency = pair.since_push.seconds();
    return frame;
  }

  void deliver_results() {
    Lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return is_closing || !results.empty(); });
      if (is_closing) return;
      StereoFrame frame = first_result();
      is_delivering = true;
      lock.unlock();
      std::exception_ptr failed;
      try {
        callback(std::move(frame));
      } catch (...) {
        failed = std::current_exception();
      }
      lock.lock();
      is_delivering = false;
      if (failed) fail(failed);
      leave(1);
    }
  }

  // ---- Handing out results ----

  StereoFrame first_result() {
    StereoFrame first = std::move(results.front());
    results.pop_front();
    return first;
  }

  bool can_be_taken() const { return !callback && !results.empty(); }

  std::optional<StereoFrame> take_result() {
    StereoFrame first = first_result();
    leave(1);
    return first;
  }

  std::optional<StereoFrame> poll() {
    const std::lock_guard lock(mutex);
    if (!can_be_taken()) return std::nullopt;
    return take_result();
  }

  std::optional<StereoFrame> wait() {
    Lock lock(mutex);
    changed.wait(lock, [&] { return can_be_taken() || inside == 0; });
    if (can_be_taken()) return take_result();
    rethrow_failure();
    return std::nullopt;
  }

  void finish() {
    Lock lock(mutex);
    changed.wait(lock, [&] { return inside == (callback ? 0 : std::ssize(results)); });
    rethrow_failure();
  }

  // ---- Ending an experiment ----

  void cancel() {
    const std::lock_guard lock(mutex);
    forget_waiting();
    std::exchange(cancelling, std::stop_source()).request_stop();
  }

  /// Cancels, and wakes a push that waits for room.
  void abandon() {
    cancel();
    const std::lock_guard lock(mutex);
    leave(results.size());
    results.clear();
  }

  void reset(ImageView left, ImageView right, const Roi& roi) {
    abandon();
    const std::lock_guard one_at_a_time(pushing);
    abandon();
    Lock lock(mutex);
    changed.wait(lock, [&] { return !is_measuring && !is_delivering; });
    results.clear();
    tracker.reset();
    inside = 0;
    next_index = 0;
    failure = nullptr;
    tracker = std::make_unique<StereoTracker>(options, rig, left, right, roi);
    kernels = tracker->kernels();
  }
};

StereoStream::StereoStream(const StereoOptions& options, const CameraRig& rig, ImageView left,
                           ImageView right, const Roi& roi, Callback callback, int capacity)
    : impl_(std::make_unique<Impl>(options, rig, left, right, roi, std::move(callback), capacity)) {}
StereoStream::~StereoStream() = default;

std::int64_t StereoStream::push(ImageView left, ImageView right) { return impl_->push(left, right); }
std::optional<std::int64_t> StereoStream::try_push(ImageView left, ImageView right) {
  return impl_->try_push(left, right);
}
std::optional<StereoFrame> StereoStream::poll() { return impl_->poll(); }
std::optional<StereoFrame> StereoStream::wait() { return impl_->wait(); }
void StereoStream::finish() { impl_->finish(); }
void StereoStream::cancel() { impl_->cancel(); }
void StereoStream::reset(ImageView left, ImageView right, const Roi& roi) { impl_->reset(left, right, roi); }

const Grid& StereoStream::grid() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_tracker().grid();
}
StereoFrame StereoStream::reference() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_tracker().reference();
}
std::vector<std::string> StereoStream::kernels() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->kernels;
}
std::optional<RigCorrection> StereoStream::rig_correction() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_tracker().rig_correction();
}
std::string StereoStream::device() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_tracker().device();
}
std::string StereoStream::device_reason() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_tracker().device_reason();
}
int StereoStream::order_between_cameras() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_tracker().order_between_cameras();
}
TrackOptions StereoStream::options() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_tracker().options();
}

}  // namespace dic
