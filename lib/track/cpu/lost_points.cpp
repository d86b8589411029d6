#include "track/cpu/lost_points.hpp"

#include "track/cpu/frame_points.hpp"
#include "track/departed_points.hpp"

namespace dic::track {

void mark_out_of_image(const PointNodes& grid_points, const HostReference& reference,
                       std::span<RefinedPoint> results) {
  const FramePoints points{grid_points, reference, results};
  const int radius = reference.refiner.options().subset / 2;
  for_each_departed(points, reference.size(), radius, reference.image().size(),
                    [&](std::int64_t i) { results[i].status = Status::out_of_image; });
}

}  // namespace dic::track
