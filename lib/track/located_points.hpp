#pragma once

#include <dic/image.hpp>
#include <dic/shared/track_rules.hpp>
#include <vector>

#include "fields/points.hpp"

namespace dic::track {

/// Points in an image as a backend uses them: whole-pixel centres of their subsets, and where the material
/// points lie beside these.
struct LocatedPoints {
  std::vector<int> x, y;  ///< centres of the subsets, inside the image, px
  std::vector<MaterialPoint>
      material;  ///< motion and offset by point; empty: each point is its centre, and has not moved
  /// The points were followed from the original reference to this image, and its ROI moves with them.
  bool are_followed = false;

  LocatedPoints() = default;
  /// Points placed in an image of this size. Points outside of it are out_of_image.
  LocatedPoints(const fields::Points& points, Size image);
  /// Points of the original reference followed into an image of this size, by a field that was measured
  /// there.
  LocatedPoints(const fields::PointNodes& nodes, const Field& field, Size image);
};

}  // namespace dic::track
