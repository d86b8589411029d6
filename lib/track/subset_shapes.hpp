#pragma once

#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "analysis/mask_box.hpp"
#include "core/mask_counts.hpp"

namespace dic::track {

/// The rectangle of a subset that is compared, relative to its centre, px.
struct SubsetShape {
  int left = 0, top = 0, width = 0, height = 0;
  bool masked = false;  ///< some of its pixels are outside the ROI

  std::int64_t area() const { return std::int64_t{width} * height; }
  auto operator<=>(const SubsetShape&) const = default;
};

/// The parts of one reference's subsets that are inside image and ROI. Subsets clipped by the border, or by
/// an ROI edge along rows or columns, use the rectangle inside; those clipped by another ROI edge are masked.
class SubsetShapes {
 public:
  /// x, y: subset centres inside the image of width x height px. roi: u8, may be empty.
  SubsetShapes(int width, int height, std::span<const int> x, std::span<const int> y, int radius,
               ImageView roi, core::ThreadPool& pool);
  /// Takes a ROI that is a rectangle inside the image.
  SubsetShapes(const Roi::Rect& roi, std::span<const int> x, std::span<const int> y, int radius);

  std::int64_t size() const { return std::ssize(points_); }
  /// Share of the subset's pixels inside image and ROI, 0..1.
  double coverage(std::int64_t point) const { return points_[point].coverage; }
  const SubsetShape& shape(std::int64_t point) const { return shapes_[points_[point].shape]; }
  /// Top left corner of the rectangle in the reference.
  PatchPosition position(std::int64_t point) const {
    return {0, points_[point].x + shape(point).left, points_[point].y + shape(point).top};
  }

  /// Calls visit(shape, members) for every shape among the points `which`. members: ascending indices into
  /// `which`.
  template <typename Visit>
  void by_shape(std::span<const std::int64_t> which, const Visit& visit) const {
    std::vector<std::size_t> end(shapes_.size() + 1), order(which.size());
    for (const std::int64_t point : which) ++end[points_[point].shape + 1];
    std::partial_sum(end.begin(), end.end(), end.begin());
    std::vector<std::size_t> next(end.begin(), end.end() - 1);
    for (std::size_t k = 0; k < which.size(); ++k) order[next[points_[which[k]].shape]++] = k;
    for (std::size_t s = 0; s < shapes_.size(); ++s)
      if (end[s] < end[s + 1]) visit(shapes_[s], std::span(order).subspan(end[s], end[s + 1] - end[s]));
  }

 private:
  struct Point {
    int x, y, shape;
    float coverage;
  };

  void add(std::span<const int> x, std::span<const int> y, int radius, const core::MaskCounts* roi);
  SubsetShape shape_of(int x, int y, int radius, const core::MaskCounts* roi, float& coverage) const;
  int index_of(const SubsetShape& shape);

  Roi::Rect box_;  ///< box of the pixels that subsets may use
  std::vector<SubsetShape> shapes_;
  std::map<SubsetShape, int> index_of_;
  std::vector<Point> points_;
};

}  // namespace dic::track
