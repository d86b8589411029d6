#pragma once

#include <dic/kernels/device.hpp>
#include <memory>
#include <utility>

#include "track/backend.hpp"
#include "track/cuda/device_field.hpp"

namespace dic::track::cuda {

/// Told by a field: only where the image becomes a reference, kernels work out the rest.
struct DevicePlaces final : Places {
  const std::shared_ptr<const DeviceField> field;
  const int width, height;  ///< px, of the image

  DevicePlaces(std::shared_ptr<const DeviceField> f, int w, int h)
      : field(std::move(f)), width(w), height(h) {}
};

/// Places of all points, in the memory of the first GPU.
struct PlacesMemory {
  kernels::DeviceBuffer centres;   ///< x, then y
  kernels::DeviceBuffer material;  ///< MaterialPoint
};

}  // namespace dic::track::cuda
