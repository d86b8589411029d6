#pragma once

#include "track/cuda/workbench.hpp"

namespace dic::track::cuda {

/// What a GPU knows of a measurement.
struct Side {
  Station& station;
  ReferenceSide& reference;
  const DeviceFrame& current;
};

}  // namespace dic::track::cuda
