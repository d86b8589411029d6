#pragma once

#include <cstdint>
#include <dic/shared/point_range.hpp>
#include <vector>

#include "fields/points.hpp"

/// Assignment of points to GPUs.
namespace dic::track::cuda {

/// The points of every GPU, as consecutive ranges.
using Partition = std::vector<PointRange>;

/// Most rows that a boundary between two GPUs moves at once. A GPU knows this number of rows beyond those
/// that it needs.
inline constexpr int kLargestMove = 8;

/// Smallest move, as a share of a GPU's points, that is worth making its lists again.
inline constexpr double kLeastMove = 1e-3;

/// Work of the first GPU besides its points, as a share of all points: it makes the whole field, which takes
/// about as long as measuring them (0.3 to 0.4 of 7.5 ms on one H100).
inline constexpr double kFieldWork = 0.04;

/// Number of GPUs, at most `devices`, that are worth their synchronization for this number of points.
int gpus_for(std::int64_t points, int devices);

/// A partition with equal work for all GPUs.
Partition first_partition(std::int64_t points, int gpus);

/// The own points of a GPU and those around them that influence them, or that may become its own.
PointRange known_points(const fields::PointNodes& points, const PointRange& own);

/// The partition of the next frames, given the seconds of each GPU for its part: boundaries move half the way
/// to equal times, by at most kLargestMove rows. Which GPU measures a point does not change the result.
Partition balanced(const fields::PointNodes& points, const Partition& partition,
                   const std::vector<double>& seconds);

}  // namespace dic::track::cuda
