#pragma once

#include <algorithm>
#include <dic/kernels/pose.hpp>
#include <vector>

#include "match/pose_kernels.hpp"

namespace dic::match {

template <typename T>
const T* upload(kernels::DeviceBuffer& buffer, const std::vector<T>& values, const kernels::Stream& stream) {
  T* target = buffer.reserve<T>(std::max<std::size_t>(1, values.size()));
  if (!values.empty()) kernels::upload(target, values.data(), values.size() * sizeof(T), stream);
  return target;
}

/// A list of a template's pixels on the device.
class DevicePixels {
 public:
  DevicePixels(const PixelList& list, const kernels::Stream& stream);
  const kernels::PosePixels& pixels() const { return pixels_; }

 private:
  kernels::DeviceBuffer buffer_;
  kernels::PosePixels pixels_;
};

}  // namespace dic::match
