#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/image.hpp>
#include <dic/shared/track_rules.hpp>
#include <vector>

namespace dic::track {

/// Calls visit(point) for every lost point of `count` that left the image, as predicted by the nearest
/// measured point. points: see <dic/shared/track_rules.hpp>.
template <typename Points, typename Visit>
void for_each_departed(const Points& points, std::int64_t count, int radius, Size image, const Visit& visit) {
  std::vector<std::int64_t> source(static_cast<std::size_t>(count), -1), wave, next;
  for (std::int64_t i = 0; i < count; ++i)
    if (points.status(i) == Status::ok) source[i] = i;
  // The first wave starts from measured points that have neighbours which are not measured.
  for (std::int64_t i = 0; i < count; ++i)
    if (source[i] < 0)
      points.for_each_neighbour(i, [&](std::int64_t n) {
        if (source[n] >= 0) wave.push_back(n);
      });
  std::sort(wave.begin(), wave.end());
  for (; !wave.empty(); wave = std::move(next), next.clear()) {
    for (const std::int64_t from : wave)
      points.for_each_neighbour(from, [&](std::int64_t n) {
        if (source[n] >= 0) return;
        source[n] = source[from];
        next.push_back(n);
        if (points.trackable(n) && has_left_image(points, n, source[n], radius, image.width, image.height))
          visit(n);
      });
    // Sorted, so that the source of a point is its first neighbour in this wave, regardless of the order of
    // the lists.
    std::sort(next.begin(), next.end());
  }
}

}  // namespace dic::track
