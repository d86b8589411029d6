#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "track/backend.hpp"
#include "track/points.hpp"

namespace dic::track {

/// The nodes of the points of which one half of the subset, left, right, above or below, shows nothing: they
/// lie beside the material that the other half shows, or at its edge. roi: u8, may be empty.
std::vector<std::int64_t> nodes_beside_texture(const TrackOptions& options, ImageView reference,
                                               ImageView roi, const Points& points);

/// The measurement with these nodes flat, and the strain that follows, on the CPU when the result is fetched.
std::unique_ptr<Result> without_nodes(std::unique_ptr<Result> measured,
                                      std::shared_ptr<const std::vector<std::int64_t>> nodes,
                                      const TrackOptions& options);

}  // namespace dic::track
