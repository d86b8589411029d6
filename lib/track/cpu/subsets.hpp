#pragma once

#include <dic/image.hpp>
#include <dic/shared/track_rules.hpp>
#include <vector>

#include "analysis/points.hpp"

namespace dic::track {

/// Where the points lie in an image of width x height px that was measured.
struct FollowedPoints {
  std::vector<int> x, y;
  std::vector<MaterialPoint> material;

  FollowedPoints() = default;
  FollowedPoints(const analysis::Points& points, const Field& field, int width, int height);
};

/// The subsets of a reference.
struct Subsets {
  std::vector<int> x, y;  ///< whole-pixel centres in the reference, one for each point
  Image roi;              ///< 0 or 255, the reference's size; empty = everywhere

  /// In the original reference.
  Subsets(const analysis::Points& points, const Image& region);
  /// In a later image. The ROI moves with the points; lost points keep the position of their node.
  Subsets(const analysis::Points& points, FollowedPoints followed, const Image& original_roi);

  /// Motion of the point from the original reference to this one.
  MaterialPoint material(std::int64_t point) const {
    return material_.empty() ? MaterialPoint{} : material_[point];
  }

 private:
  std::vector<MaterialPoint> material_;  ///< by point; empty in the original reference
};

}  // namespace dic::track
