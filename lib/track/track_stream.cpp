#include <dic/error.hpp>
#include <dic/track_stream.hpp>
#include <utility>

#include "track/result_stream.hpp"
#include "track/sequence.hpp"

namespace dic {
namespace {

/// A frame on its way through the stream.
struct FrameInFlight : track::InFlight<FrameResult> {
  std::shared_ptr<const track::Frame> frame;      ///< null after the measurement, or after an error
  std::unique_ptr<track::PendingFrame> measured;  ///< set by the measurement
};

void fetch(FrameInFlight& frame) {
  if (!frame.measured) return;
  FrameResult result = frame.measured->fetch();
  result.index = frame.result.index;
  result.spans.insert(result.spans.begin(), frame.result.spans.begin(), frame.result.spans.end());
  frame.result = std::move(result);
  frame.measured.reset();
}

}  // namespace

struct TrackStream::Impl {
  const TrackOptions options;
  std::unique_ptr<track::Sequence> sequence;  ///< null after a reset that failed
  std::vector<std::string> kernels;
  track::ResultStream<FrameInFlight> stream;  ///< its lock protects the two members above

  Impl(const TrackOptions& wanted, ImageView reference, const Roi& roi, Callback callback, int capacity)
      : options(wanted),
        sequence(std::make_unique<track::Sequence>(wanted, reference, roi)),
        stream(steps(), std::move(callback), capacity, "frame") {}

  track::ResultStream<FrameInFlight>::Steps steps() {
    return {[this](FrameInFlight& frame, const std::stop_token& stop) { measure(frame, stop); },
            [this] { kernels = sequence->backend().kernels(); }, fetch};
  }

  const track::Sequence& known_sequence() const {
    if (!sequence) throw UsageError("The stream has no reference: reset it with one.");
    return *sequence;
  }

  void measure(FrameInFlight& frame, const std::stop_token& stop) {
    const auto next = [this]() -> std::shared_ptr<const track::Frame> {
      const auto lock = stream.lock();
      const FrameInFlight* waiting = stream.next();
      return waiting ? waiting->frame : nullptr;
    };
    frame.measured = sequence->measure(std::move(frame.frame), stop, next);
  }

  /// Throws if the stream has no reference, or the view is inconsistent.
  void check(ImageView image) const {
    known_sequence();
    ImageView::of(image.data, image.type, image.size(), image.row_bytes, image.bit_depth);
  }

  void take(FrameInFlight& frame, ImageView image) const {
    const track::Stopwatch copying;
    frame.frame = sequence->take(image);
    frame.result.spans.push_back(copying.span("copy"));
  }

  void reset(ImageView reference, const Roi& roi) {
    stream.reset([&] {
      sequence.reset();
      sequence = std::make_unique<track::Sequence>(options, reference, roi);
    });
  }
};

TrackStream::TrackStream(const TrackOptions& options, ImageView reference, const Roi& roi, Callback callback,
                         int capacity)
    : impl_(std::make_unique<Impl>(options, reference, roi, std::move(callback), capacity)) {}
TrackStream::~TrackStream() = default;

const Grid& TrackStream::grid() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_sequence().grid();
}
std::int64_t TrackStream::push(ImageView frame) {
  return impl_->stream.push([&] { impl_->check(frame); },
                            [&](FrameInFlight& in_flight) { impl_->take(in_flight, frame); });
}
std::optional<std::int64_t> TrackStream::try_push(ImageView frame) {
  return impl_->stream.try_push([&] { impl_->check(frame); },
                                [&](FrameInFlight& in_flight) { impl_->take(in_flight, frame); });
}
std::optional<FrameResult> TrackStream::poll() { return impl_->stream.poll(); }
std::optional<FrameResult> TrackStream::wait() { return impl_->stream.wait(); }
void TrackStream::finish() { impl_->stream.finish(); }
void TrackStream::cancel() { impl_->stream.cancel(); }
void TrackStream::reset(ImageView reference, const Roi& roi) { impl_->reset(reference, roi); }

bool TrackStream::restore(std::span<const std::byte> state, const ReadFrame& read) {
  const auto lock = impl_->stream.lock();
  return impl_->sequence && impl_->sequence->restore(state, read);
}

std::vector<std::string> TrackStream::kernels() const {
  const auto lock = impl_->stream.lock();
  return impl_->kernels;
}
std::string TrackStream::device() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_sequence().backend().device();
}
std::string TrackStream::device_reason() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_sequence().device_reason();
}
TrackOptions TrackStream::options() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_sequence().options();
}
double TrackStream::prepare_seconds() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_sequence().prepare_seconds();
}

}  // namespace dic
