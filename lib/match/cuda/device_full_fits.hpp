#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "match/cuda/device_pixels.hpp"
#include "match/pose_backend.hpp"

namespace dic::match {

/// Fits at full resolution on a device, one template at a time with all of its pixels.
class DeviceFullFits {
 public:
  explicit DeviceFullFits(int device) : device_(device) {}

  /// Begins an image, which is in device memory when `open` is called.
  void set_image(const kernels::DeviceImage& image, ScalarType type, const float* mask);
  /// Waits until the fits that another thread opened are destroyed. None if the spline of the image does not
  /// fit into memory.
  std::unique_ptr<FullFits> open();

 private:
  class Fits;

  bool make_spline();
  const kernels::PosePixels& on_device(const PixelList& list);

  int device_;
  std::mutex mutex_;
  kernels::Stream stream_;
  kernels::DeviceImage image_{};
  ScalarType type_{};
  kernels::SplineLevel spline_;
  bool has_spline_ = false;
  std::map<const PixelList*, DevicePixels> lists_;
  kernels::DeviceBuffer coefficients_, values_, weights_, scratch_, fitted_, slopes_;
  kernels::PinnedBuffer answer_;
};

}  // namespace dic::match
