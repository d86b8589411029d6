#include <condition_variable>
#include <deque>
#include <dic/error.hpp>
#include <dic/track_stream.hpp>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "track/sequence.hpp"
#include "track/stopwatch.hpp"

namespace dic {
namespace {

/// A frame on its way through the stream.
struct FrameInFlight {
  FrameResult result;
  track::Stopwatch since_push;
  std::shared_ptr<const track::Frame> frame;      ///< null after the measurement, or after an error
  std::unique_ptr<track::PendingFrame> measured;  ///< set by the measurement
};

int checked(int capacity) {
  if (capacity < 1) throw UsageError("A stream needs room for a frame: choose a capacity of at least 1.");
  return capacity;
}

FrameInFlight pop(std::deque<FrameInFlight>& queue) {
  FrameInFlight first = std::move(queue.front());
  queue.pop_front();
  return first;
}

void fetch(FrameInFlight& frame) {
  if (!frame.measured) return;
  FrameResult result = frame.measured->fetch();
  result.index = frame.result.index;
  result.spans.insert(result.spans.begin(), frame.result.spans.begin(), frame.result.spans.end());
  frame.result = std::move(result);
  frame.measured.reset();
}

}  // namespace

/// One thread measures frames from `waiting` and puts them into `measured`. Another fetches them from there,
/// and passes results to `results` or the callback.
struct TrackStream::Impl {
  using Lock = std::unique_lock<std::mutex>;

  const TrackOptions options;
  const Callback callback;
  const int capacity;

  std::mutex pushing;  ///< serializes pushes and resets; locked before `mutex`

  mutable std::mutex mutex;  ///< protects all following members
  std::condition_variable changed;
  std::unique_ptr<track::Sequence> sequence;  ///< null after a reset that failed
  std::deque<FrameInFlight> waiting, measured;
  std::deque<FrameResult> results;
  int inside = 0;  ///< number of frames pushed whose result was not handed out
  std::int64_t next_index = 0;
  std::stop_source cancelling;
  std::exception_ptr failure;  ///< exception that ended the experiment
  std::vector<std::string> kernels;
  bool measuring = false, delivering = false, closing = false;

  std::thread measurer, deliverer;

  Impl(const TrackOptions& o, ImageView reference, const Roi& roi, Callback c, int room)
      : options(o),
        callback(std::move(c)),
        capacity(checked(room)),
        sequence(std::make_unique<track::Sequence>(o, reference, roi)) {
    try {
      measurer = std::thread([this] { measure_frames(); });
      deliverer = std::thread([this] { deliver_results(); });
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
      closing = true;
    }
    changed.notify_all();
    for (std::thread* thread : {&measurer, &deliverer})
      if (thread->joinable()) thread->join();
  }

  const track::Sequence& known_sequence() const {
    if (!sequence) throw UsageError("The stream has no reference: reset it with one.");
    return *sequence;
  }

  // ---- Frames that are dropped; the caller holds the lock ----

  void leave(std::size_t frames) {
    inside -= static_cast<int>(frames);
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

  /// Does a step of a frame without the lock. A UsageError concerns this frame only; other exceptions end the
  /// experiment. Returns false if the frame must be dropped.
  template <typename Step>
  bool advance(Lock& lock, FrameInFlight& frame, const Step& step) {
    lock.unlock();
    std::exception_ptr failed;
    bool goes_on = true;
    try {
      step(frame);
    } catch (const Cancelled&) {
      goes_on = false;
    } catch (const UsageError& e) {
      frame.result.error = e.what();
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    if (failed) fail(failed);
    if (goes_on && !failed) return true;
    leave(1);
    return false;
  }

  // ---- Pushing frames ----

  bool has_room() const { return inside < capacity || failure; }

  std::int64_t take(Lock& lock, ImageView image) {
    rethrow_failure();
    const track::Sequence& target = known_sequence();
    ImageView::of(image.data, image.type, image.size(), image.row_bytes,
                  image.bit_depth);  // throws if the view is inconsistent
    ++inside;
    FrameInFlight frame;
    frame.result.index = next_index++;
    const std::int64_t index = frame.result.index;
    if (advance(lock, frame, [&](FrameInFlight& p) {
          const track::Stopwatch copying;
          p.frame = target.take(image);
          p.result.spans.push_back(copying.span("copy"));
        }))
      waiting.push_back(std::move(frame));
    rethrow_failure();
    changed.notify_all();
    return index;
  }

  std::int64_t push(ImageView image) {
    const std::lock_guard one_at_a_time(pushing);
    Lock lock(mutex);
    changed.wait(lock, [&] { return has_room(); });
    return take(lock, image);
  }

  std::optional<std::int64_t> try_push(ImageView image) {
    // If another thread is pushing, it takes the free place or waits for one; this call waits for neither.
    const Lock one_at_a_time(pushing, std::try_to_lock);
    if (!one_at_a_time) return std::nullopt;
    Lock lock(mutex);
    if (!has_room()) return std::nullopt;
    return take(lock, image);
  }

  // ---- Measuring ----

  void measure_frames() {
    Lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return closing || !waiting.empty(); });
      if (closing) return;
      FrameInFlight frame = pop(waiting);
      measuring = true;
      const bool goes_on = advance(
          lock, frame, [this, token = cancelling.get_token()](FrameInFlight& p) { measure(p, token); });
      measuring = false;
      kernels = sequence->backend().kernels();
      if (goes_on) measured.push_back(std::move(frame));
      changed.notify_all();
    }
  }

  void measure(FrameInFlight& frame, const std::stop_token& token) {
    if (!frame.frame) return;
    const auto next = [this] {
      const std::lock_guard lock(mutex);
      return waiting.empty() ? nullptr : waiting.front().frame;
    };
    frame.measured = sequence->measure(std::move(frame.frame), token, next);
    if (token.stop_requested()) throw Cancelled("The measurement was cancelled.");
  }

  void deliver_results() {
    Lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return closing || !measured.empty(); });
      if (closing) return;
      FrameInFlight frame = pop(measured);
      delivering = true;
      if (advance(lock, frame, fetch)) deliver(lock, frame);
      delivering = false;
      changed.notify_all();
    }
  }

  void deliver(Lock& lock, FrameInFlight& frame) {
    frame.result.latency = frame.since_push.seconds();
    if (!callback) {
      results.push_back(std::move(frame.result));
      return;
    }
    lock.unlock();
    std::exception_ptr failed;
    try {
      callback(std::move(frame.result));
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    if (failed) fail(failed);
    leave(1);
  }

  // ---- Handing out results ----

  FrameResult take_result() {
    FrameResult first = std::move(results.front());
    results.pop_front();
    leave(1);
    return first;
  }

  std::optional<FrameResult> poll() {
    const std::lock_guard lock(mutex);
    if (results.empty()) return std::nullopt;
    return take_result();
  }

  std::optional<FrameResult> wait() {
    Lock lock(mutex);
    changed.wait(lock, [&] { return !results.empty() || inside == 0; });
    if (!results.empty()) return take_result();
    rethrow_failure();
    return std::nullopt;
  }

  void finish() {
    Lock lock(mutex);
    changed.wait(lock, [&] { return inside == std::ssize(results); });
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

  void reset(ImageView reference, const Roi& roi) {
    abandon();
    const std::lock_guard one_at_a_time(pushing);
    abandon();
    Lock lock(mutex);
    changed.wait(lock, [&] { return !measuring && !delivering; });
    measured.clear();
    results.clear();
    sequence.reset();
    inside = 0;
    next_index = 0;
    failure = nullptr;
    sequence = std::make_unique<track::Sequence>(options, reference, roi);
  }
};

TrackStream::TrackStream(const TrackOptions& options, ImageView reference, const Roi& roi, Callback callback,
                         int capacity)
    : impl_(std::make_unique<Impl>(options, reference, roi, std::move(callback), capacity)) {}
TrackStream::~TrackStream() = default;

const Grid& TrackStream::grid() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_sequence().grid();
}
std::int64_t TrackStream::push(ImageView frame) { return impl_->push(frame); }
std::optional<std::int64_t> TrackStream::try_push(ImageView frame) { return impl_->try_push(frame); }
std::optional<FrameResult> TrackStream::poll() { return impl_->poll(); }
std::optional<FrameResult> TrackStream::wait() { return impl_->wait(); }
void TrackStream::finish() { impl_->finish(); }
void TrackStream::cancel() { impl_->cancel(); }
void TrackStream::reset(ImageView reference, const Roi& roi) { impl_->reset(reference, roi); }

bool TrackStream::restore(std::span<const std::byte> state, const ReadFrame& read) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->sequence && impl_->sequence->restore(state, read);
}

std::vector<std::string> TrackStream::kernels() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->kernels;
}
std::string TrackStream::device() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_sequence().backend().device();
}
std::string TrackStream::device_reason() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_sequence().device_reason();
}
TrackOptions TrackStream::options() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_sequence().options();
}
double TrackStream::prepare_seconds() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known_sequence().prepare_seconds();
}

}  // namespace dic
