#pragma once

#include <memory>

#include "track/backend.hpp"

namespace dic::track {

/// The measurement, then brought into the coordinates of the camera in the options, and the strain there; on
/// the CPU when the result is fetched. Positions stay those in the image. nodes: of the grid, in these
/// coordinates.
std::unique_ptr<Result> with_camera(std::unique_ptr<Result> measured, const TrackOptions& options,
                                    std::shared_ptr<const NodePositions> nodes, ThreadPool& pool);

}  // namespace dic::track
