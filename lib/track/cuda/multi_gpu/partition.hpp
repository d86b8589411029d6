#pragma once

#include <cstdint>
#include <dic/shared/point_range.hpp>
#include <vector>

#include "fields/points.hpp"

/// Which GPU measures which points.
namespace dic::track::cuda {

/// The points of every GPU: one range after the other.
using Partition = std::vector<PointRange>;

/// Rows that a boundary between two GPUs may move at once. A GPU knows so many rows beyond those that it
/// needs.
inline constexpr int kLargestMove = 8;

/// A move of less than this part of a GPU's points is not worth making its lists anew.
inline constexpr double kLeastMove = 1e-3;

/// What the first GPU does besides its points: it makes the field of all, which takes about as long as
/// measuring this part of them (on one H100 0.3 to 0.4 of 7.5 ms).
inline constexpr double kFieldWork = 0.04;

/// GPUs, of `devices`, that are worth their synchronization for so many points.
int gpus_for(std::int64_t points, int devices);

/// Equal work for all.
Partition first_partition(std::int64_t points, int gpus);

/// The own points of a GPU, and those around that decide on them and on points that may become its own.
PointRange known_points(const fields::PointNodes& points, const PointRange& own);

/// The partition of the next frames, after GPUs took so many seconds for their parts: boundaries move half
/// the way to equal times, at most by kLargestMove rows. Which GPU measures a point does not change the
/// result.
Partition balanced(const fields::PointNodes& points, const Partition& partition,
                   const std::vector<double>& seconds);

}  // namespace dic::track::cuda
