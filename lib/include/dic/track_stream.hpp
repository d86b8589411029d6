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
/// they are ready. On an idle stream, the latency is the time of one Tracker::track.
///
/// Memory is bounded by `capacity`: at most this number of frames may be inside, which means that they were
/// pushed and their results not taken yet. All calls but constructor and destructor may come from any thread;
/// streams are independent of each other.
class TrackStream {
 public:
  /// Called with every result, on one thread of the stream, never twice at the same time. It may call
  /// cancel(), but no other function of the stream. An exception from it ends the experiment as a DeviceError
  /// does.
  using Callback = std::function<void(FrameResult)>;

  /// Opens a stream with the arguments of Tracker. capacity: at least 1; 1 = one frame after the other.
  /// Without a callback, results are taken by poll() or wait(). Throws UsageError, DeviceError.
  DIC_API TrackStream(const TrackOptions& options, ImageView reference, const Roi& roi = {},
                      Callback callback = {}, int capacity = 4);
  /// Cancels.
  DIC_API ~TrackStream();
  TrackStream(const TrackStream&) = delete;
  TrackStream& operator=(const TrackStream&) = delete;

  DIC_API const Grid& grid() const;

  /// Takes the pixels of the next frame (they may change afterwards) and returns its index at once, or as
  /// soon as fewer than `capacity` frames are inside. A frame that cannot be measured (size, type) yields a
  /// result with an error, and the stream continues. A DeviceError ends the experiment: measured frames are
  /// delivered, then push, wait and finish throw it, until reset.
  DIC_API std::int64_t push(ImageView frame);
  /// Does the same, but if `capacity` frames are inside, it returns no value at once and does not take the
  /// frame.
  DIC_API std::optional<std::int64_t> try_push(ImageView frame);

  /// Returns the next result, if it is ready.
  DIC_API std::optional<FrameResult> poll();
  /// Waits for the next result; returns no value if no frame is inside.
  DIC_API std::optional<FrameResult> wait();
  /// Waits until every frame was measured, and every result given to the callback.
  DIC_API void finish();
  /// Drops the frames that are not measured yet, including the one that is being measured: they yield no
  /// result. Returns at once; the next push continues with the same reference.
  DIC_API void cancel();
  /// Begins the next experiment: cancels, drops results that were not taken, and takes another reference with
  /// the same options. Throws as the constructor does; the stream then has no reference and push throws
  /// UsageError.
  DIC_API void reset(ImageView reference, const Roi& roi = {});

  /// Reads the frame that had this FrameResult::index in the stream that made a state.
  using ReadFrame = std::function<Image(std::int64_t index)>;
  /// Continues an earlier stream of the same options and reference; call it before the first push. The next
  /// frame is measured as if the frame with this FrameResult::state had been measured just before; with the
  /// strategies `previous` and `auto`, it does not start from the shapes of that frame. read: called with
  /// these strategies, for frames that replaced the reference. Returns false if that is impossible: the state
  /// is not a valid one, or the device is a GPU, which has no states.
  DIC_API bool restore(std::span<const std::byte> state, const ReadFrame& read = {});

  /// These functions return what those of Tracker return.
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
