#pragma once

#include <dic/live.hpp>
#include <dic/stereo.hpp>
#include <dic/track.hpp>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "live/camera.hpp"

namespace dic::live {

/// Measures the frames of a camera, or the pairs of two cameras, against the reference.
class Meter {
 public:
  struct Measured {
    Field field;
    double noise = 0;  ///< of the left image, grey levels
    StageSeconds seconds;
    /// As StereoFrame has it; NaN with one camera.
    double epipolar_median = std::numeric_limits<double>::quiet_NaN();
  };

  /// reference: a pair if there are two cameras. Throws as Tracker, StereoTracker and read_camera_rig do.
  Meter(const TrackJob& job, const LiveOptions& options, const Image& reference, const Image* right);

  const Grid& grid() const;
  TrackOptions options() const;
  std::string device() const;
  std::string device_reason() const;
  std::vector<std::string> kernels() const;
  /// The tracker that measures pairs; null with one camera.
  const StereoTracker* of_pairs() const { return std::get_if<StereoTracker>(&tracker_); }
  /// Throws UsageError if a size or type differs from the reference, DeviceError.
  Measured measure(const CameraFrame& frame);

 private:
  std::variant<Tracker, StereoTracker> tracker_;
};

}  // namespace dic::live
