#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <dic/shared/refine_options.hpp>
#include <dic/shared/shape_parameters.hpp>
#include <vector>

#include "features/local_motion.hpp"
#include "track/departed_points.hpp"

namespace dic::track {

using features::Stretch;

/// Points that can be looked for, and are neither measured nor given up as flat.
struct LostPoints {
  std::vector<std::int64_t> points;
  std::vector<int> x, y;     ///< centres of their subsets in the reference, px
  std::int64_t in_view = 0;  ///< number of them that are likely to be in the current image
};

/// Lists the lost points. points: `count` points, see <dic/shared/track_rules.hpp>. radius: of the subsets,
/// px. image: size of the current image.
template <typename Points>
LostPoints lost_points(const Points& points, std::int64_t count, int radius, Size image) {
  LostPoints lost;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!points.trackable(i) || points.status(i) == Status::ok || points.status(i) == Status::flat) continue;
    lost.points.push_back(i);
    lost.x.push_back(points.x(i));
    lost.y.push_back(points.y(i));
  }
  lost.in_view = std::ssize(lost.points);
  for_each_departed(points, count, radius, image, [&](std::int64_t) { --lost.in_view; });
  return lost;
}

/// The shape from which the refinement of a lost point starts.
struct FeatureStart {
  std::int64_t point = -1;
  ShapeParameters shape;
};

/// Starts from the motions of features around the points, in the order of `lost`; none for points without
/// features or outside the current image. finder, reference, current: of these two images.
std::vector<FeatureStart> starts_from_features(const LostPoints& lost, const RefineOptions& options,
                                               features::MotionFinder& finder, Size reference, Size current,
                                               Stretch stretch);

}  // namespace dic::track
