#pragma once

#include <dic/image.hpp>
#include <dic/shared/track_rules.hpp>
#include <vector>

#include "track/located_points.hpp"

namespace dic::track {

/// The subsets of a reference.
struct Subsets {
  std::vector<int> x, y;  ///< whole-pixel centres in the reference, one for each point
  Image roi;              ///< ROI as 0 or 255, the reference's size; empty = everywhere

  /// Subsets of points that lie in the reference. Lost points keep the position of their node.
  Subsets(const fields::PointNodes& nodes, LocatedPoints points, const Image& original_roi);

  /// Motion of the point from the original reference to this one.
  MaterialPoint material(std::int64_t point) const {
    return material_.empty() ? MaterialPoint{} : material_[point];
  }

 private:
  std::vector<MaterialPoint>
      material_;  ///< motion by point; empty if no point has moved or lies between pixels
};

}  // namespace dic::track
