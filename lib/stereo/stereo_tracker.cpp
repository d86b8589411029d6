#include <dic/stereo.hpp>

#include "stereo/pair_tracker.hpp"

namespace dic {

std::vector<std::string> StereoOptions::validate() const {
  std::vector<std::string> found = track.validate();
  if (track.refine.order == 0 && !track.automatic_order)
    found.push_back("Order 0 cannot follow a subset from one camera to the other: choose order 1 or 2.");
  if (track.camera)
    found.push_back("The calibration of both cameras takes the place of a camera file: leave that out.");
  if (track.global.enabled) found.push_back("The global step is made for one camera: leave it out.");
  if (axes == StereoAxes::points && !axes_points)
    found.push_back("Three points in the left reference are needed for these axes.");
  if (axes != StereoAxes::points && axes_points)
    found.push_back(
        "Three points that define axes were given, but other axes: choose those through points, or leave the "
        "points out.");
  if (!(largest_epipolar > 0)) found.push_back("The largest epipolar distance must be above 0 px.");
  return found;
}

struct StereoTracker::Impl : stereo::PairTracker {
  using stereo::PairTracker::PairTracker;
};

StereoTracker::StereoTracker(const StereoOptions& options, const CameraRig& rig, ImageView left,
                             ImageView right, const Roi& roi, std::stop_token stop)
    : impl_(std::make_unique<Impl>(options, rig, left, right, roi, stop)) {}
StereoTracker::~StereoTracker() = default;
StereoTracker::StereoTracker(StereoTracker&&) noexcept = default;
StereoTracker& StereoTracker::operator=(StereoTracker&&) noexcept = default;

const Grid& StereoTracker::grid() const { return impl_->grid(); }
const StereoFrame& StereoTracker::reference() const { return impl_->reference(); }
const std::optional<RigCorrection>& StereoTracker::rig_correction() const { return impl_->rig_correction(); }
StereoFrame StereoTracker::track(ImageView left, ImageView right, std::stop_token stop) {
  return impl_->track(left, right, stop);
}
bool StereoTracker::restore(std::span<const std::byte> state, const ReadImage& read) {
  return impl_->restore(state, read);
}
std::vector<std::string> StereoTracker::kernels() const { return impl_->kernels(); }
std::string StereoTracker::device() const { return impl_->device(); }
std::string StereoTracker::device_reason() const { return impl_->device_reason(); }
int StereoTracker::order_between_cameras() const { return impl_->order_between_cameras(); }
TrackOptions StereoTracker::options() const { return impl_->options(); }

}  // namespace dic
