#pragma once

#include <dic/image.hpp>
#include <dic/shared/track_rules.hpp>
#include <vector>

#include "track/points.hpp"

namespace dic::track {

/// What became of the points in an image of width x height px that was measured.
struct FollowedPoints {
  std::vector<int> x, y;
  std::vector<MaterialPoint> material;

  FollowedPoints(const Points& points, const Field& field, int width, int height);
};

/// The subsets that a reference is looked at through.
struct Subsets {
  std::vector<int> x, y;                ///< whole-pixel centres in the reference, one for each point
  std::vector<MaterialPoint> material;  ///< of every point; empty where the points have not moved
  Image roi;                            ///< 0 or 255, the reference's size; empty = everywhere

  /// In the original reference.
  Subsets(const Points& points, const Image& region);
  /// Where the points lie now, and the ROI with them. Points that were lost keep their node's place.
  Subsets(const Points& points, FollowedPoints followed, const Image& original_roi);

  MaterialPoint material_of(std::int64_t point) const {
    return material.empty() ? MaterialPoint{} : material[point];
  }
};

}  // namespace dic::track
