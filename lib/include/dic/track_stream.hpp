#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <dic/track.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dic {

/// Tracks frames while they arrive: frames go in as a camera delivers them, results come out in the same
/// order, and copying, measuring and handing out overlap.
///
/// Latency: a frame waits for those pushed before it and for nothing else; results are handed out as soon as
/// they are there. With an idle stream that is the time of one Tracker::track.
///
/// Memory is bounded by `capacity`: so many frames may be inside, pushed and with a result that was not taken
/// yet. All calls but constructor and destructor may come from any thread; streams are independent of each
/// other.
class TrackStream {
 public:
  /// Is given every result, on one thread of the stream, never two at a time. It may call cancel(), but
  /// no other function of the stream. What it throws ends the experiment as a DeviceError does.
  using Callback = std::function<void(FrameResult)>;

  /// As Tracker's. capacity: at least 1; 1 = a frame after the other. Without a callback results are taken by
  /// poll() or wait(). Throws UsageError, DeviceError.
  TrackStream(const TrackOptions& options, ImageView reference, const Roi& roi = {}, Callback callback = {},
              int capacity = 4);
  /// Cancels.
  ~TrackStream();
  TrackStream(const TrackStream&) = delete;
  TrackStream& operator=(const TrackStream&) = delete;

  const Grid& grid() const;

  /// Takes the pixels of the next frame (they may change afterwards) and returns its index at once, or as
  /// soon as fewer than `capacity` frames are inside. A frame that cannot be measured (size, type) yields a
  /// result that says so, and the stream goes on. A DeviceError ends the experiment: what was measured is
  /// handed out, then push, wait and finish throw it, until reset.
  std::int64_t push(ImageView frame);
  /// The same, but where `capacity` frames are inside it returns nothing at once, and the frame is not taken.
  std::optional<std::int64_t> try_push(ImageView frame);

  /// The next result, if it is there.
  std::optional<FrameResult> poll();
  /// Waits for the next result; nothing where no frame is inside.
  std::optional<FrameResult> wait();
  /// Waits until every frame was measured, and every result given to the callback.
  void finish();
  /// Forgets the frames that are not measured yet, that under way too: they yield no result. Returns at once;
  /// the next push goes on with the same reference.
  void cancel();
  /// The next experiment: cancels, forgets results that were not taken, and begins with another reference and
  /// the same options. Throws as the constructor does; the stream then has no reference and refuses frames.
  void reset(ImageView reference, const Roi& roi = {});

  /// See Tracker.
  std::vector<std::string> kernels() const;
  std::string device() const;
  std::string device_reason() const;
  double prepare_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic
