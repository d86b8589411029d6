#pragma once

#include <cstdint>
#include <dic/camera_rig.hpp>
#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <dic/stereo.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dic {

/// Measures pairs of images of two cameras while they arrive, as TrackStream does for one camera. Results
/// come in the order of the pairs and are those of StereoTracker; copying, measuring and delivering overlap.
///
/// Memory is bounded by `capacity`: at most this number of pairs may be inside, which means that they were
/// pushed and their results not taken yet. All calls but constructor and destructor may come from any thread;
/// streams are independent of each other.
class StereoStream {
 public:
  /// Called with every result, on one thread of the stream, never twice at the same time. It may call
  /// cancel(), but no other function of the stream. An exception from it ends the experiment as a DeviceError
  /// does.
  using Callback = std::function<void(StereoFrame)>;

  /// Opens a stream with the arguments of StereoTracker and measures the shape in the references. capacity:
  /// at least 1. Without a callback, results are taken by poll() or wait(). Throws UsageError, DeviceError.
  DIC_API StereoStream(const StereoOptions& options, const CameraRig& rig, ImageView left, ImageView right,
                       const Roi& roi = {}, Callback callback = {}, int capacity = 4);
  /// Cancels.
  DIC_API ~StereoStream();
  StereoStream(const StereoStream&) = delete;
  StereoStream& operator=(const StereoStream&) = delete;

  DIC_API const Grid& grid() const;
  /// The shape in the references, as of StereoTracker.
  DIC_API StereoFrame reference() const;

  /// Takes the pixels of the next pair (they may change afterwards) and returns its index, or waits until
  /// fewer than `capacity` pairs are inside. A pair that cannot be measured (size, type) yields a result with
  /// an error, and the stream continues. A DeviceError ends the experiment: measured pairs are delivered,
  /// then push, wait and finish throw it, until reset.
  DIC_API std::int64_t push(ImageView left, ImageView right);
  /// Does the same, but if `capacity` pairs are inside, it returns no value at once and does not take the
  /// pair.
  DIC_API std::optional<std::int64_t> try_push(ImageView left, ImageView right);

  /// Returns the next result, if it is ready.
  DIC_API std::optional<StereoFrame> poll();
  /// Waits for the next result; returns no value if no pair is inside.
  DIC_API std::optional<StereoFrame> wait();
  /// Waits until every pair was measured, and every result given to the callback.
  DIC_API void finish();
  /// Drops the pairs that are not measured yet, including the one that is being measured: they yield no
  /// result. Returns at once; the next push continues with the same references.
  DIC_API void cancel();
  /// Begins the next experiment: cancels, drops results that were not taken, and takes other references with
  /// the same options and rig. Throws as the constructor does; the stream then has no references and push
  /// throws UsageError.
  DIC_API void reset(ImageView left, ImageView right, const Roi& roi = {});

  /// These functions return what those of StereoTracker return.
  DIC_API std::vector<std::string> kernels() const;
  DIC_API std::optional<RigCorrection> rig_correction() const;
  DIC_API std::string device() const;
  DIC_API std::string device_reason() const;
  DIC_API int order_between_cameras() const;
  DIC_API TrackOptions options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic
