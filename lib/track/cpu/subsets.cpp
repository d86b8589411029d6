#include "track/cpu/subsets.hpp"

#include <utility>

namespace dic::track {
namespace {

Image moved_roi(const Image& roi, const analysis::Points& points,
                const std::vector<MaterialPoint>& material) {
  if (roi.empty()) return {};
  const int width = roi.width(), height = roi.height();
  Image out({width, height}, ScalarType::u8);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      if (!roi.row<std::uint8_t>(y)[x]) continue;
      const std::int64_t point = points.point_at[points.cells().node_of(x, y)];
      if (point < 0 || material[point].status != Status::ok) continue;
      mark_moved_pixel(x, y, material[point], width, height,
                       [&](int a, int b) { out.row<std::uint8_t>(b)[a] = 255; });
    }
  return out;
}

}  // namespace

FollowedPoints::FollowedPoints(const analysis::Points& points, const Field& field, int width, int height)
    : x(points.x), y(points.y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t k = points.node_of[i];
    material.push_back(followed({field.status[k], field.u[k], field.v[k], field.sigma_u[k], field.sigma_v[k]},
                                {width, height}, x[i], y[i]));
  }
}

Subsets::Subsets(const analysis::Points& points, const Image& region)
    : x(points.x), y(points.y), roi(region.empty() ? Image() : copy_of(region)) {}

Subsets::Subsets(const analysis::Points& points, FollowedPoints followed, const Image& original_roi)
    : x(std::move(followed.x)),
      y(std::move(followed.y)),
      roi(moved_roi(original_roi, points, followed.material)),
      material_(std::move(followed.material)) {}

}  // namespace dic::track
