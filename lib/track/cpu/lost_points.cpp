#include "track/cpu/lost_points.hpp"

#include <algorithm>

#include "track/cpu/frame_points.hpp"

namespace dic::track {

void explain_lost(const Points& grid_points, const HostReference& reference,
                  std::vector<RefinedPoint>& results) {
  const FramePoints points{grid_points, reference, results};
  const ImageView image = reference.image();
  const int radius = reference.refiner.options().subset / 2;
  std::vector<std::int64_t> source(results.size(), -1), wave, next;
  for (std::int64_t i = 0; i < reference.size(); ++i)
    if (results[i].status == Status::ok) wave.push_back(source[i] = i);
  for (; !wave.empty(); wave = std::move(next), next.clear()) {
    for (const std::int64_t from : wave)
      points.for_each_neighbour(from, [&](std::int64_t n) {
        if (source[n] >= 0) return;
        source[n] = source[from];
        next.push_back(n);
        if (points.trackable(n) && left_image(points, n, source[n], radius, image.width, image.height))
          results[n].status = Status::out_of_image;
      });
    // The source of a point is its first neighbour in this wave, whatever the order of the lists.
    std::sort(next.begin(), next.end());
  }
}

}  // namespace dic::track
