#pragma once

#include <dic/kernels/device.hpp>
#include <memory>
#include <utility>

#include "track/backend.hpp"
#include "track/cuda/memory/device_field.hpp"

namespace dic::track::cuda {

/// The positions in a field. Kernels compute them only where its image becomes a reference.
struct DevicePositions final : TrackedPositions {
  const std::shared_ptr<const DeviceField> field;
  const int width, height;  ///< px, of the image

  DevicePositions(std::shared_ptr<const DeviceField> f, int w, int h)
      : field(std::move(f)), width(w), height(h) {}
};

/// Positions of all points in the latest image that became a reference, in the memory of the first GPU.
struct PositionsMemory {
  kernels::DeviceBuffer centres;   ///< x, then y
  kernels::DeviceBuffer material;  ///< MaterialPoint
};

}  // namespace dic::track::cuda
