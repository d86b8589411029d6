#include "live/meter.hpp"

#include <dic/camera_rig.hpp>
#include <utility>

namespace dic::live {
namespace {

std::variant<Tracker, StereoTracker> tracker_of(const TrackJob& job, const LiveOptions& options,
                                                const Image& reference, const Image* right) {
  if (!right) return Tracker(job.options, reference, job.roi);
  StereoOptions stereo = options.stereo;
  stereo.track = job.options;
  return StereoTracker(stereo, read_camera_rig(options.calibration, reference.size()), reference, *right,
                       job.roi);
}

}  // namespace

Meter::Meter(const TrackJob& job, const LiveOptions& options, const Image& reference, const Image* right)
    : tracker_(tracker_of(job, options, reference, right)) {}

const Grid& Meter::grid() const {
  return std::visit([](const auto& tracker) -> const Grid& { return tracker.grid(); }, tracker_);
}
TrackOptions Meter::options() const {
  return std::visit([](const auto& tracker) { return tracker.options(); }, tracker_);
}
std::string Meter::device() const {
  return std::visit([](const auto& tracker) { return tracker.device(); }, tracker_);
}
std::string Meter::device_reason() const {
  return std::visit([](const auto& tracker) { return tracker.device_reason(); }, tracker_);
}
std::vector<std::string> Meter::kernels() const {
  return std::visit([](const auto& tracker) { return tracker.kernels(); }, tracker_);
}

Meter::Measured Meter::measure(const CameraFrame& frame) {
  if (auto* tracker = std::get_if<Tracker>(&tracker_)) {
    FrameResult result = tracker->track(*frame.image);
    return {std::move(result.field), result.noise, result.seconds};
  }
  StereoFrame result = std::get<StereoTracker>(tracker_).track(*frame.image, *frame.right);
  return {std::move(result.field), result.noise_left, result.seconds, result.epipolar_median};
}

}  // namespace dic::live
