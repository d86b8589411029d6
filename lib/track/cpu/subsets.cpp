#include "track/cpu/subsets.hpp"

#include <utility>

namespace dic::track {
namespace {

Image moved_roi(const Image& roi, const fields::PointNodes& nodes,
                const std::vector<MaterialPoint>& material) {
  if (roi.empty()) return {};
  const int width = roi.width(), height = roi.height();
  Image out({width, height}, ScalarType::u8);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      if (!roi.row<std::uint8_t>(y)[x]) continue;
      const std::int64_t point = nodes.point_at[nodes.cells().node_of(x, y)];
      if (point < 0 || material[point].status != Status::ok) continue;
      mark_moved_pixel(x, y, material[point], width, height,
                       [&](int a, int b) { out.row<std::uint8_t>(b)[a] = 255; });
    }
  return out;
}

}  // namespace

Subsets::Subsets(const fields::PointNodes& nodes, LocatedPoints points, const Image& original_roi)
    : x(std::move(points.x)),
      y(std::move(points.y)),
      roi(points.are_followed    ? moved_roi(original_roi, nodes, points.material)
          : original_roi.empty() ? Image()
                                 : copy_of(original_roi)),
      material_(std::move(points.material)) {}

}  // namespace dic::track
