#include "track/subset_shapes.hpp"

#include <algorithm>
#include <optional>

namespace dic::track {
namespace {

/// Drops the outer rows and columns that have no pixel of the ROI: subsets clipped along rows or columns then
/// need no mask.
SubsetShape shrunk(SubsetShape s, int x, int y, const core::MaskCounts& roi) {
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
                           ImageView roi, core::ThreadPool& pool)
    : box_{0, 0, width, height} {
  std::optional<core::MaskCounts> counts;
  if (!roi.empty()) counts.emplace(roi, pool);
  add(x, y, radius, counts ? &*counts : nullptr);
}

SubsetShapes::SubsetShapes(const Roi::Rect& roi, std::span<const int> x, std::span<const int> y, int radius)
    : box_(roi) {
  add(x, y, radius, nullptr);
}

void SubsetShapes::add(std::span<const int> x, std::span<const int> y, int radius,
                       const core::MaskCounts* roi) {
  points_.reserve(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    Point point{x[i], y[i], 0, 0};
    point.shape = index_of(shape_of(x[i], y[i], radius, roi, point.coverage));
    points_.push_back(point);
  }
}

SubsetShape SubsetShapes::shape_of(int x, int y, int radius, const core::MaskCounts* roi,
                                   float& coverage) const {
  const int left = std::max(-radius, box_.x - x), right = std::min(radius, box_.x + box_.width - 1 - x);
  const int top = std::max(-radius, box_.y - y), bottom = std::min(radius, box_.y + box_.height - 1 - y);
  if (left > right || top > bottom) {
    coverage = 0;
    return {};
  }
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
  if (!points_.empty() && shapes_[points_.back().shape] == shape)
    return points_.back().shape;  // the usual case
  const auto [entry, is_new] = index_of_.try_emplace(shape, static_cast<int>(shapes_.size()));
  if (is_new) shapes_.push_back(shape);
  return entry->second;
}

}  // namespace dic::track
