#pragma once

#include <cstdint>
#include <dic/kernels/points.hpp>
#include <dic/shared/split_rules.hpp>

/// Measurements with parts of subsets, by the rules of <dic/shared/split_rules.hpp>: which points are
/// measured again, with which parts, and which measurement counts. The measurement itself is
/// launch_prepare_parts and launch_refine. All pointers are device memory.
namespace dic::kernels {

/// What a point is to the others while parts are measured.
enum class SplitState : std::uint8_t {
  unusable,  ///< not trackable
  trusted,
  open,      ///< doubtful or lost
  replaced,  ///< was open; its value is that of a part
  exhausted  ///< was open; there is no part that could be measured
};

/// A frame whose points are measured again, all of them on this GPU: GridPoints::own does not matter.
struct SplitFrame {
  GridPoints points;
  TrackedPoint* tracked = nullptr;         ///< [count]
  SplitState* states = nullptr;            ///< [count]
  track::ResidualLevel* levels = nullptr;  ///< [2 * tiles.count()]: around every tile; then of every tile
  track::Tiles tiles;
  int radius = 0, step = 0;
  int width = 0, height = 0;  ///< of the current image
};

/// Queues the levels, the states, and the list of open points.
void launch_find_open_points(const SplitFrame& frame, const PointList& open, StreamHandle stream);

/// The measurement of an open point from one direction.
struct PartSlot {
  std::int32_t task = -1;   ///< -1: none
  std::int32_t pixels = 0;  ///< of the part
};
/// Measurements of some open points, in any order. Memory for track::kDirections of each point.
struct PartList {
  PreparedSubset* subsets = nullptr;  ///< by measurement; not prepared yet
  RefineTask* tasks = nullptr;        ///< by measurement; RefineTask::point is in `subsets`
  float* most_residuals = nullptr;    ///< by measurement: see RefineTasks
  std::uint32_t* masks = nullptr;     ///< by measurement: PixelMasks::words_of() each
  std::int32_t* count = nullptr;      ///< measurements
  PartSlot* slots = nullptr;          ///< by point and direction
};

/// Queues listing what is measured of `n` points in a round: of those that are still open. Where there is
/// nothing in round 0, the whole subset, the point is exhausted.
void launch_list_parts(const SplitFrame& frame, const std::int32_t* points, std::int64_t n, int round,
                       const PartList& parts, StreamHandle stream);
/// Queues taking the best accepted result of each of the same points.
void launch_take_parts(const SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                       const PartList& parts, const RefineResult* results, StreamHandle stream);
/// Queues giving up those of `n` points that are doubtful and not replaced, unless all around them predict
/// their value.
void launch_give_up_contradicted(const SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                                 StreamHandle stream);

}  // namespace dic::kernels
