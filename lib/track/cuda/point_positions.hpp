#pragma once

#include <dic/kernels/device.hpp>
#include <memory>
#include <utility>

#include "track/backend.hpp"
#include "track/cuda/memory/device_field.hpp"
#include "track/located_points.hpp"

namespace dic::track::cuda {

/// Positions that a field was measured at, or that points were placed at. They go to a GPU, or are computed
/// by kernels there, only if their image becomes a reference.
struct DevicePositions final : PointPositions {
  const std::shared_ptr<const DeviceField> field;  ///< null: the points were placed
  const Size image = {};                           ///< size of the field's image, px
  const LocatedPoints placed = {};                 ///< positions if there is no field
  const bool are_nodes = false;                    ///< every point was placed at its node

  DevicePositions(std::shared_ptr<const DeviceField> f, Size of_image)
      : field(std::move(f)), image(of_image) {}
  DevicePositions(const Points& points, Size of_image)
      : placed(points, of_image), are_nodes(points.are_nodes()) {}
};

/// Positions of all points in the latest image that became a reference, in the memory of the first GPU.
struct PositionsMemory {
  bool are_followed = false;       ///< true if a measurement found the points, see LocatedPoints
  kernels::DeviceBuffer centres;   ///< x of all points, then y
  kernels::DeviceBuffer material;  ///< MaterialPoint
};

}  // namespace dic::track::cuda
