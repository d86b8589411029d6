#include <dic/error.hpp>
#include <dic/stereo_stream.hpp>
#include <utility>

#include "track/result_stream.hpp"

namespace dic {
namespace {

/// A pair on its way through the stream.
struct PairInFlight : track::InFlight<StereoFrame> {
  Image left, right;  ///< empty after the measurement
};

void take(PairInFlight& pair, ImageView left, ImageView right) {
  pair.left = copy_of(left);
  pair.right = copy_of(right);
}

void check_view(ImageView view) {
  ImageView::of(view.data, view.type, view.size(), view.row_bytes, view.bit_depth);
}

}  // namespace

struct StereoStream::Impl {
  const StereoOptions options;
  const CameraRig rig;
  std::unique_ptr<StereoTracker> tracker;  ///< null after a reset that failed
  std::vector<std::string> kernels;
  track::ResultStream<PairInFlight> stream;  ///< its lock protects the two members above

  Impl(const StereoOptions& wanted, const CameraRig& cameras, ImageView left, ImageView right, const Roi& roi,
       Callback callback, int capacity)
      : options(wanted),
        rig(cameras),
        tracker(std::make_unique<StereoTracker>(wanted, cameras, left, right, roi)),
        kernels(tracker->kernels()),
        stream(steps(), std::move(callback), capacity, "pair") {}

  track::ResultStream<PairInFlight>::Steps steps() {
    return {[this](PairInFlight& pair, const std::stop_token& stop) { measure(pair, stop); },
            [this] { kernels = tracker->kernels(); }, [](PairInFlight&) {}};
  }

  const StereoTracker& known_tracker() const {
    if (!tracker) throw UsageError("The stream has no references: reset it with a pair.");
    return *tracker;
  }

  void measure(PairInFlight& pair, const std::stop_token& stop) {
    StereoFrame measured = tracker->track(pair.left, pair.right, stop);
    measured.index = pair.result.index;
    pair.result = std::move(measured);
    pair.left = pair.right = {};
  }

  /// Throws if the stream has no references, or a view is inconsistent.
  void check(ImageView left, ImageView right) const {
    known_tracker();
    check_view(left), check_view(right);
  }

  void reset(ImageView left, ImageView right, const Roi& roi) {
    stream.reset([&] {
      tracker.reset();
      tracker = std::make_unique<StereoTracker>(options, rig, left, right, roi);
      kernels = tracker->kernels();
    });
  }
};

StereoStream::StereoStream(const StereoOptions& options, const CameraRig& rig, ImageView left,
                           ImageView right, const Roi& roi, Callback callback, int capacity)
    : impl_(std::make_unique<Impl>(options, rig, left, right, roi, std::move(callback), capacity)) {}
StereoStream::~StereoStream() = default;

std::int64_t StereoStream::push(ImageView left, ImageView right) {
  return impl_->stream.push([&] { impl_->check(left, right); },
                            [&](PairInFlight& pair) { take(pair, left, right); });
}
std::optional<std::int64_t> StereoStream::try_push(ImageView left, ImageView right) {
  return impl_->stream.try_push([&] { impl_->check(left, right); },
                                [&](PairInFlight& pair) { take(pair, left, right); });
}
std::optional<StereoFrame> StereoStream::poll() { return impl_->stream.poll(); }
std::optional<StereoFrame> StereoStream::wait() { return impl_->stream.wait(); }
void StereoStream::finish() { impl_->stream.finish(); }
void StereoStream::cancel() { impl_->stream.cancel(); }
void StereoStream::reset(ImageView left, ImageView right, const Roi& roi) { impl_->reset(left, right, roi); }

const Grid& StereoStream::grid() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_tracker().grid();
}
StereoFrame StereoStream::reference() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_tracker().reference();
}
std::vector<std::string> StereoStream::kernels() const {
  const auto lock = impl_->stream.lock();
  return impl_->kernels;
}
std::optional<RigCorrection> StereoStream::rig_correction() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_tracker().rig_correction();
}
std::string StereoStream::device() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_tracker().device();
}
std::string StereoStream::device_reason() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_tracker().device_reason();
}
int StereoStream::order_between_cameras() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_tracker().order_between_cameras();
}
TrackOptions StereoStream::options() const {
  const auto lock = impl_->stream.lock();
  return impl_->known_tracker().options();
}

}  // namespace dic
