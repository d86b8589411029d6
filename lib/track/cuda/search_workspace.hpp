#pragma once

#include <dic/kernels/common_motion.hpp>
#include <dic/kernels/device.hpp>
#include <memory>

#include "track/cuda/device_reference.hpp"
#include "track/cuda/subset_search.hpp"

namespace dic::track::cuda {

/// Memory and state that the search for starts keeps from frame to frame on one GPU.
class SearchWorkspace {
 public:
  explicit SearchWorkspace(const kernels::Device& device) : whole(device), clipped(device) {}

  /// True if the lists `whole` and `clipped` hold the points of this reference already.
  bool lists_hold(const DeviceReference& reference) const {
    return listed_.lock().get() == &reference && listed_range_ == reference.points().own;
  }
  void set_listed(const DeviceReference& reference) {
    listed_ = reference.weak_from_this();
    listed_range_ = reference.points().own;
  }
  void forget_listed() { listed_.reset(); }

  kernels::Stream side_stream{
      kernels::Priority::high};  ///< stream of clipped subsets, which are few, but need many launches
  kernels::Event predicted;      ///< the main stream has made the predictions
  kernels::Event clipped_done;   ///< the side stream has searched the clipped subsets
  SubsetSearch whole, clipped;
  kernels::DeviceBuffer starts[2];     ///< PointStart of this frame and of the next one, alternating
  kernels::DeviceBuffer other_starts;  ///< PointStart of a second search
  kernels::DeviceBuffer coarse_field;  ///< u of all nodes, then v
  kernels::DeviceBuffer references, windows, peaks;

  /// Memory of the points that tell the common motion. Another GPU may still read the samples of the frame
  /// before.
  kernels::AskedPoints asked(std::int64_t frame) {
    constexpr std::int64_t n = kMotionSamples;
    return {asked_.reserve<std::int32_t>(n), predicted_.reserve<kernels::PointStart>(n),
            samples_.reserve<MotionSample>(2 * n) + frame % 2 * n};
  }
  MotionSample* gathered_samples(int gpus) {
    return gathered_samples_.reserve<MotionSample>(std::int64_t{gpus} * kMotionSamples);
  }
  kernels::Event sampled;        ///< the samples are written
  kernels::DeviceBuffer motion;  ///< LinearMotion

 private:
  std::weak_ptr<const DeviceReference> listed_;
  kernels::PointRange listed_range_;
  kernels::DeviceBuffer asked_, predicted_, samples_, gathered_samples_;
};

}  // namespace dic::track::cuda
