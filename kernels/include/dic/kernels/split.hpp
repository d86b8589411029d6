#pragma once

#include <cstdint>
#include <dic/kernels/points.hpp>
#include <dic/shared/split_rules.hpp>

/// Measurements with parts of subsets, by the rules of <dic/shared/split_rules.hpp>: which points are
/// measured again, with which parts, and which measurement counts. The measurements themselves are launched
/// by launch_prepare_parts and launch_refine. All pointers are device memory.
namespace dic::kernels {

/// State of a point, as other points see it while parts are measured.
enum class SplitState : std::uint8_t {
  unusable,  ///< not trackable, or no part of it is worth measuring
  trusted,
  open,      ///< doubtful or lost
  replaced,  ///< was open; its value now comes from a part
  exhausted  ///< was open; no part could be measured
};

/// A frame whose points are measured again, all of them on this GPU: GridPoints::own does not matter.
struct SplitFrame {
  GridPoints points;
  TrackedPoint* tracked = nullptr;   ///< [count]
  SplitState* states = nullptr;      ///< [count]
  std::uint16_t* refuted = nullptr;  ///< [count]: bit k is set if track::direction(k) is refuted
  /// [2 * tiles.count()]: levels around every tile; then levels of every tile
  track::ResidualLevel* residual_levels = nullptr;
  track::Tiles tiles;
  int radius = 0, step = 0;
  Size image;  ///< size of the current image
};

/// Queues the levels, the states, and the list of open points.
void launch_find_open_points(const SplitFrame& frame, const PointList& open, StreamHandle stream);

/// The measurement of an open point from one direction.
struct PartSlot {
  std::int32_t task = -1;   ///< -1: none
  std::int32_t pixels = 0;  ///< pixels of the part
};
/// Rounds that are measured together. Their measurements do not depend on each other, and one launch for all
/// takes little longer than one for a single round if few points are open.
struct SplitRounds {
  int first = 0, count = 1;
};
/// Measurements of some open points, in any order. The memory holds track::kDirections per point and round.
struct PartList {
  PreparedSubset* subsets = nullptr;  ///< per measurement; not prepared yet
  RefineTask* tasks = nullptr;        ///< per measurement; RefineTask::point is an index into `subsets`
  float* most_residuals = nullptr;    ///< per measurement: see RefineTasks
  std::uint32_t* masks = nullptr;     ///< per measurement: PixelMasks::words_of() words
  std::int32_t* count = nullptr;      ///< number of measurements
  PartSlot* slots = nullptr;          ///< per round, point and direction
};

/// Queues listing the measurements of some rounds for those of `n` points that are still open. A point for
/// which round 0, the whole subset, has no measurement is exhausted. Refuted directions are left out.
void launch_list_parts(const SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                       const SplitRounds& rounds, const PartList& parts, StreamHandle stream);
/// Queues noting the directions that the measurements of round track::kProbingRound, listed alone, refute for
/// those of the same points that are still open.
void launch_refute_directions(const SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                              const PartList& parts, const RefineResult* results, StreamHandle stream);
/// Queues taking, for each of the same points, the best accepted result of the first round that has one.
void launch_take_parts(const SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                       const SplitRounds& rounds, const PartList& parts, const RefineResult* results,
                       StreamHandle stream);
/// Queues giving up those of `n` points that are doubtful and not replaced, unless all points around them
/// predict their value.
void launch_give_up_contradicted(const SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                                 StreamHandle stream);

}  // namespace dic::kernels
