#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <dic/track.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dic {

/// Tracks frames while they arrive. Results come in the order of the frames; copying, measuring and
/// delivering overlap.
///
/// Latency: a frame waits for those pushed before it and for nothing else; results are delivered as soon as
/// they are there. With an idle stream that is the time of one Tracker::track.
///
/// Memory is bounded by `capacity`: so many frames may be inside, which means pushed, and their result not
/// taken yet. All calls but constructor and destructor may come from any thread; streams are independent of
/// each other.
class TrackStream {
 public:
  /// Called with every result, on one thread of the stream, never twice at the same time. It may call
  /// cancel(), but no other function of the stream. What it throws ends the experiment as a DeviceError does.
  using Callback = std::function<void(FrameResult)>;

  /// As Tracker's. capacity: at least 1; 1 = a frame after the other. Without a callback results are taken by
  /// poll() or wait(). Throws UsageError, DeviceError.
  DIC_API TrackStream(const TrackOptions& options, ImageView reference, const Roi& roi = {},
                      Callback callback = {}, int capacity = 4);
  /// Cancels.
  DIC_API ~TrackStream();
  TrackStream(const TrackStream&) = delete;
  TrackStream& operator=(const TrackStream&) = delete;

  DIC_API const Grid& grid() const;

  /// Takes the pixels of the next frame (they may change afterwards) and returns its index at once, or as
  /// soon as fewer than `capacity` frames are inside. A frame that cannot be measured (size, type) yields a
  /// result that says so, and the stream goes on. A DeviceError ends the experiment: what was measured is
  /// delivered, then push, wait and finish throw it, until reset.
  DIC_API std::int64_t push(ImageView frame);
  /// The same, but where `capacity` frames are inside it returns nothing at once, and the frame is not taken.
  DIC_API std::optional<std::int64_t> try_push(ImageView frame);

  /// The next result, if it is there.
  DIC_API std::optional<FrameResult> poll();
  /// Waits for the next result; nothing where no frame is inside.
  DIC_API std::optional<FrameResult> wait();
  /// Waits until every frame was measured, and every result given to the callback.
  DIC_API void finish();
  /// Drops the frames that are not measured yet, also the one that is being measured: they yield no result.
  /// Returns at once; the next push goes on with the same reference.
  DIC_API void cancel();
  /// The next experiment: cancels, drops results that were not taken, and begins with another reference and
  /// the same options. Throws as the constructor does; the stream then has no reference and push throws
  /// UsageError.
  DIC_API void reset(ImageView reference, const Roi& roi = {});

  /// Reads the frame that had this FrameResult::index in the stream that made a state.
  using ReadFrame = std::function<Image(std::int64_t index)>;
  /// Before the first push: the next frame is measured as if the frame with this FrameResult::state had been
  /// measured just before, by a stream of the same options and reference; with the strategies `previous` and
  /// `auto` from starts of its own. read: called with these strategies, for frames that took the place of the
  /// reference. False where that cannot be: the state is not such a one, or the device is a GPU (there are no
  /// states).
  DIC_API bool restore(std::span<const std::byte> state, const ReadFrame& read = {});

  /// See Tracker.
  DIC_API std::vector<std::string> kernels() const;
  DIC_API std::string device() const;
  DIC_API std::string device_reason() const;
  DIC_API double prepare_seconds() const;
  DIC_API TrackOptions options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic
