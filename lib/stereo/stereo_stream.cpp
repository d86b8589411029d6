#include <dic/error.hpp>
#include <dic/stereo_stream.hpp>
#include <utility>

#include "stereo/pair_tracker.hpp"
#include "track/result_stream.hpp"

namespace dic {
namespace {

/// A pair on its way through the stream.
struct PairInFlight : track::InFlight<StereoFrame> {
  stereo::TakenPair taken;      ///< empty after the match, or after an error
  stereo::MatchedPair matched;  ///< set by the match
};

void check_view(ImageView view) {
  ImageView::of(view.data, view.type, view.size(), view.row_bytes, view.bit_depth);
}

}  // namespace

struct StereoStream::Impl {
  const StereoOptions options;
  const CameraRig rig;
  std::unique_ptr<stereo::PairTracker> tracker;  ///< null after a reset that failed
  std::vector<std::string> kernels;
  track::ResultStream<PairInFlight> stream;  ///< its lock protects the two members above

  Impl(const StereoOptions& wanted, const CameraRig& cameras, ImageView left, ImageView right, const Roi& roi,
       Callback callback, int capacity)
      : options(wanted),
        rig(cameras),
        tracker(std::make_unique<stereo::PairTracker>(wanted, cameras, left, right, roi, std::stop_token())),
        kernels(tracker->kernels()),
        stream(steps(), std::move(callback), capacity, "pair") {}

  track::ResultStream<PairInFlight>::Steps steps() {
    return {[this](PairInFlight& pair, const std::stop_token& stop) { match(pair, stop); },
            [this] { kernels = tracker->kernels(); }, [this](PairInFlight& pair) { finish(pair); }};
  }

  const stereo::PairTracker& known_tracker() const {
    if (!tracker) throw UsageError("The stream has no references: reset it with a pair.");
    return *tracker;
  }

  void take(PairInFlight& pair, ImageView left, ImageView right) { pair.taken = tracker->take(left, right); }

  void match(PairInFlight& pair, const std::stop_token& stop) {
    const auto next = [this]() -> stereo::TakenPair {
      const auto lock = stream.lock();
      const PairInFlight* waiting = stream.next();
      return waiting ? waiting->taken : stereo::TakenPair{};
    };
    pair.matched = tracker->match(std::move(pair.taken), stop, next);
  }

  void finish(PairInFlight& pair) {
    if (!pair.matched.right) return;
    StereoFrame measured = tracker->finish(std::exchange(pair.matched, {}));
    measured.index = pair.result.index;
    pair.result = std::move(measured);
  }

  /// Throws if the stream has no references, or a view is inconsistent.
  void check(ImageView left, ImageView right) const {
    known_tracker();
    check_view(left), check_view(right);
  }

  void reset(ImageView left, ImageView right, const Roi& roi) {
    stream.reset([&] {
      tracker.reset();
      tracker = std::make_unique<stereo::PairTracker>(options, rig, left, right, roi, std::stop_token());
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
                            [&](PairInFlight& pair) { impl_->take(pair, left, right); });
}
std::optional<std::int64_t> StereoStream::try_push(ImageView left, ImageView right) {
  return impl_->stream.try_push([&] { impl_->check(left, right); },
                                [&](PairInFlight& pair) { impl_->take(pair, left, right); });
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
