#pragma once

#include <dic/image.hpp>

#include "core/cuda_devices.hpp"

namespace dic::analysis {

/// An image that the host can read: the given one, or a copy if it is in the memory of a GPU.
class HostPixels {
 public:
  /// on_gpu: the image may be in the memory of a GPU.
  HostPixels(ImageView image, bool on_gpu)
      : copy_(on_gpu ? core::copy_from_gpu(image) : Image()), view_(copy_.empty() ? image : copy_.view()) {}
  HostPixels(const HostPixels&) = delete;
  HostPixels& operator=(const HostPixels&) = delete;

  ImageView view() const { return view_; }

 private:
  Image copy_;
  ImageView view_;
};

}  // namespace dic::analysis
