#include "track/subset_shapes.hpp"

#include <algorithm>
#include <optional>

namespace dic::track {
namespace {

/// Without the outer rows and columns that hold nothing of the ROI: what an edge along the rows or columns
/// cuts needs no mask then.
SubsetShape shrunk(SubsetShape s, int x, int y, const MaskCounts& roi) {
  const auto empty = [&](int left, int top, int width, int height) {
    return roi.inside(x + left, y + top, width, height) == 0;
  };
  while (empty(s.left, s.top, 1, s.height)) ++s.left, --s.width;
  while (empty(s.left + s.width - 1, s.top, 1, s.height)) --s.width;
  while (empty(s.left, s.top, s.width, 1)) ++s.top, --s.height;
  while (empty(s.left, s.top + s.height - 1, s.width, 1)) --s.height;
  return s;
}

}  // namespace

SubsetShapes::SubsetShapes(int width, int height, std::span<const int> x, std::span<const int> y, int radius,
                           ImageView roi)
    : width_(width), height_(height) {
  points_.reserve(x.size());
  std::optional<MaskCounts> counts;
  if (!roi.empty()) counts.emplace(roi);
  for (std::size_t i = 0; i < x.size(); ++i) {
    Point point{x[i], y[i], 0, 0};
    point.shape = index_of(shape_of(x[i], y[i], radius, counts ? &*counts : nullptr, point.coverage));
    points_.push_back(point);
  }
}

SubsetShape SubsetShapes::shape_of(int x, int y, int radius, const MaskCounts* roi, float& coverage) const {
  const int left = std::max(-radius, -x), right = std::min(radius, width_ - 1 - x);
  const int top = std::max(-radius, -y), bottom = std::min(radius, height_ - 1 - y);
  SubsetShape shape{left, top, right - left + 1, bottom - top + 1, false};
  std::int64_t inside = shape.area();
  if (roi) {
    inside = roi->inside(x + left, y + top, shape.width, shape.height);
    if (inside > 0 && inside < shape.area()) shape = shrunk(shape, x, y, *roi);
    shape.masked = inside < shape.area();
  }
  coverage = static_cast<float>(inside) / static_cast<float>((2 * radius + 1) * (2 * radius + 1));
  return shape;
}

int SubsetShapes::index_of(const SubsetShape& shape) {
  const auto [entry, is_new] = index_of_.try_emplace(shape, static_cast<int>(shapes_.size()));
  if (is_new) shapes_.push_back(shape);
  return entry->second;
}

}  // namespace dic::track
