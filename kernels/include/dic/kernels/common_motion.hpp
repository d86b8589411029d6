#pragma once

#include <dic/kernels/points.hpp>
#include <dic/shared/common_motion.hpp>

/// The common motion of the points since the last frame: a few are searched first, and tell where the others
/// are (<dic/shared/common_motion.hpp>). All pointers are device memory.
namespace dic::kernels {

/// Memory of the points that are asked, [track::kMotionSamples] each.
struct AskedPoints {
  std::int32_t* list;            ///< points; -1: no own point, or one that cannot be asked
  PointStart* predicted;         ///< their starts before they are searched
  track::MotionSample* samples;  ///< how far they were found from there
};

/// Queues listing the own points to ask, those that have a prediction by the last frame and a rectangular
/// subset. last: its points.
void launch_ask_points(const GridPoints& points, const TrackedPoint* last, const PointStart* starts,
                       const AskedPoints& asked, StreamHandle stream);

/// Queues writing the samples after the search of the listed points, whose starts are put back. found: least
/// score of a point that was surely found.
void launch_sample_motion(const GridPoints& points, const AskedPoints& asked, float found, PointStart* starts,
                          StreamHandle stream);

/// Queues moving the starts of the own points by the common motion. samples: [gpus * track::kMotionSamples],
/// those of all GPUs, of which each point has one. reach: of the search, px. motion: scratch memory for one.
void launch_follow_motion(const GridPoints& points, const track::MotionSample* samples, int gpus, int reach,
                          track::LinearMotion* motion, PointStart* starts, StreamHandle stream);

}  // namespace dic::kernels
