#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/fields.hpp>
#include <dic/kernels/index_list.hpp>
#include <dic/kernels/refine.hpp>
#include <dic/kernels/search_windows.hpp>
#include <dic/shared/coarse_field.hpp>
#include <dic/shared/correlation.hpp>
#include <dic/shared/effort.hpp>
#include <dic/shared/image_view.hpp>
#include <dic/shared/point_range.hpp>
#include <dic/shared/track_rules.hpp>
#include <dic/shared/trust_rules.hpp>
#include <span>

/// The points of a frame between search, refinement and field: starts, recovery, statuses, by the rules of
/// <dic/shared/track_rules.hpp>. All pointers are device memory.
///
/// Lists, starts, tasks and statuses cover the own points (GridPoints::own); peaks, accepted results and
/// fields cover the points that are passed.
///
/// The order of lists differs from run to run; results do not depend on it. The launch that fills a list sets
/// its count to zero first.
namespace dic::kernels {

using track::PointRange;

/// The points of a grid in one reference, in the order of its rows. If several GPUs measure them, each lists,
/// starts and refines its own points, and also holds the results of the points around them (the halo).
struct GridPoints {
  int nx = 0, ny = 0;                       ///< nodes
  const std::int32_t* point_at = nullptr;   ///< [ny * nx]: point of a node; -1 outside the ROI
  const std::int32_t* node_of = nullptr;    ///< [count]: node of a point
  const int *x = nullptr, *y = nullptr;     ///< [count]: subset centres, reference pixels
  const PreparedSubset* subsets = nullptr;  ///< [count]; points whose status is not ok are not searched
  std::int64_t count = 0;
  PointRange own{0, count};    ///< points measured on this GPU
  PointRange known{0, count};  ///< own points, and at least track::kIslandReach rows of nodes around them
  Size image{};                ///< size of all images, px
  const track::Effort* efforts = nullptr;  ///< [count]; null: everything is done to find each point
};

/// Start of the refinement of a point: `shape` is relative to a whole-pixel displacement (u, v).
struct PointStart {
  std::int32_t u = 0, v = 0;
  RelativeShape shape;
  float score = -1;  ///< ZNCC at whole pixels; -1: not searched yet; kLeftToNeighbours

  static constexpr float kLeftToNeighbours = -2;  ///< the point is not searched, and takes no peak
};

/// Result of a point so far. `result.shape` is relative to (u, v).
struct TrackedPoint {
  std::int32_t u = 0, v = 0;
  RefineResult result;
};

/// Some points, in any order; the memory holds all points.
struct PointList {
  std::int32_t* points = nullptr;
  std::int32_t* count = nullptr;
};

/// Tasks that a launch lists; the memory holds one for each own point.
struct TaskList {
  RefineTask* tasks = nullptr;
  std::int32_t* count = nullptr;
};

/// Queues writing n counts, at most 32, to pinned memory. Unlike a copy, this does not wait for copies of
/// whole fields that are in progress.
void launch_store_counts(const std::int32_t* counts, int n, std::int32_t* on_host, StreamHandle stream);

/// Queues marking the subsets, of `count`, whose points could not be followed to this reference.
void launch_mark_lost(const track::MaterialPoint* material, std::int64_t count, PreparedSubset* subsets,
                      StreamHandle stream);

/// Queues giving up points.count subsets whose points get no effort (points.efforts): those that are ok
/// become low_correlation. subsets: those of the points.
void launch_give_up_effortless(const GridPoints& points, PreparedSubset* subsets, StreamHandle stream);

// ---- starts ----

/// Queues starts at the displacements of the last frame (all shapes 0 if `last` is null): the shape of the
/// point itself, or of its best neighbour, continued to the point. `without` lists trackable points without
/// such a start, except those that are left to their neighbours if there was a last frame, by their effort:
/// these get the score kLeftToNeighbours, all others -1. counts: [3], numbers of trackable points that the
/// last frame excuses (track::is_excused), of those among them without a start, both without points that are
/// left to their neighbours, and of the latter.
void launch_starts_from_last(const GridPoints& points, const TrackedPoint* last, PointStart* starts,
                             const PointList& without, std::int32_t* counts, StreamHandle stream);

/// Queues starts of the points of a list, scores -1, from a coarse displacement field. u, v: see
/// track::sample.
void launch_starts_from_field(const GridPoints& points, const IndexList& list,
                              const track::FieldLattice& lattice, const float* u, const float* v,
                              PointStart* starts, StreamHandle stream);

/// Queues dividing the trackable ones of `n` points (list null: of all own points) into those whose subset is
/// the whole square of 2 * radius + 1 px, and those that the border or the ROI clips. radius 0: divides them
/// into rectangles of any size, and subsets of any other shape.
void launch_split_subsets(const GridPoints& points, const std::int32_t* list, std::int64_t n, int radius,
                          const PointList& whole, const PointList& clipped, StreamHandle stream);

/// Queues the positions of the subsets of windows.count points (list) and of their windows in image 0.
/// references[k] is the top-left pixel of the square (outside the image if the border clips it); windows[k]
/// is references[k] plus the rounded displacement of the start, less the range.
void launch_place_windows(const GridPoints& points, const std::int32_t* list, const PointStart* starts,
                          const SearchWindows& windows, StreamHandle stream);

/// Queues taking peaks[k], found for point list[k] where launch_place_windows placed it, as its start if the
/// score is no worse: the start takes the fitted displacement and the score of the peak and keeps its slopes.
/// With `follow`, the points whose peak lies on the border of its window are listed in `again`, for another
/// search around it.
void launch_take_peaks(const std::int32_t* list, const SearchWindows& windows, const Peak* peaks, bool follow,
                       PointStart* starts, const PointList& again, StreamHandle stream);

/// Queues the list of the trackable points whose start scores less than `least` and whose loss is a reason to
/// search whole images (see track::Effort). excused: number of those among them that the last frame excuses
/// (track::is_excused); last: its points, or null. now: points of this frame, of which the measured ones are
/// not listed; null: all are listed.
void launch_list_lost_starts(const GridPoints& points, const TrackedPoint* last, const TrackedPoint* now,
                             const PointStart* starts, float least, const PointList& lost,
                             std::int32_t* excused, StreamHandle stream);

/// Queues replacing the start of each of `n` points by its other start if that scores better and the point is
/// not left to its neighbours.
void launch_keep_better_starts(std::int64_t n, const PointStart* others, PointStart* starts,
                               StreamHandle stream);

// ---- recovery ----

/// Queues the state of points that are not refined yet (the status of the reference, or low_correlation), and
/// one task for every own point, in grid order, so that the refinement finds the pixels of neighbours in the
/// cache. A point that is not trackable, or whose start scores less than `least`, gets a task of no_point.
/// order: order of the shape function; terms beyond it are dropped.
void launch_initial_tasks(const GridPoints& points, const PointStart* starts, float least, int order,
                          TrackedPoint* tracked, const TaskList& tasks, StreamHandle stream);

/// Scores from `least` to below `below`.
struct ScoreRange {
  float least, below;
  /// Selects only points whose loss is a reason to search whole images (see track::Effort), and does not give
  /// up those that have certainly left the image.
  bool sought_only = false;
};
/// Queues one task for every trackable point that is neither measured nor given up, and whose start has a
/// score in the range. Points are given up as flat, and here if they have certainly left the image
/// (<dic/shared/departure_rules.hpp>), whatever their score: these become out_of_image. tasks.tasks null: the
/// points are only counted.
void launch_tasks_from_starts(const GridPoints& points, TrackedPoint* tracked, const PointStart* starts,
                              const ScoreRange& scores, int order, const TaskList& tasks,
                              StreamHandle stream);

/// Refinements of starts that may be needed later, made while others go on. Device memory.
struct EarlyTasks {
  RefineTask* tasks = nullptr;       ///< [most]
  RefineResult* results = nullptr;   ///< [most]
  std::int32_t* count = nullptr;     ///< number of tasks
  std::int32_t* of_point = nullptr;  ///< [points]: number of the task of an own point; -1: it has none
  std::int32_t most = 0;
};
/// Queues listing up to early.most tasks that launch_tasks_from_starts would list now.
void launch_early_tasks(const GridPoints& points, const TrackedPoint* tracked, const PointStart* starts,
                        const ScoreRange& scores, int order, const EarlyTasks& early, StreamHandle stream);
/// Queues taking from a list those tasks that were refined early: tasks of no_point replace them.
void launch_leave_out_early(const TaskList& tasks, std::int64_t max_count, const EarlyTasks& early,
                            StreamHandle stream);
/// Queues putting these tasks back, and their results among those of the list.
void launch_put_back_early(const TaskList& tasks, std::int64_t max_count, RefineResult* results,
                           const EarlyTasks& early, StreamHandle stream);

/// Queues accepting results that are better than the state of their point. No two tasks belong to the same
/// point. fresh: [count], 1 if the point is measured by its new result, otherwise 0.
void launch_accept_results(const GridPoints& points, const RefineTasks& tasks, const RefineResult* results,
                           TrackedPoint* tracked, std::uint8_t* fresh, StreamHandle stream);

/// Counts that tell which subsets show mere noise (track::knows_noise): of the certain points, by the class
/// of their residual, then of the trackable points.
struct NoiseCounts {
  static constexpr int kCount = track::ValueClasses::kCount + 1;
  static constexpr std::size_t kBytes = kCount * sizeof(std::int32_t);
};
/// Queues counting the own points. counts: [NoiseCounts::kCount].
void launch_count_certain(const GridPoints& points, const TrackedPoint* tracked, std::int32_t* counts,
                          StreamHandle stream);
/// Queues the sums of the counts of several GPUs. parts: [copies, NoiseCounts::kCount].
void launch_add_counts(const std::int32_t* parts, int copies, std::int32_t* sums, StreamHandle stream);
/// Queues giving up the own points that show mere noise: their status becomes flat, and they are not fresh.
/// Gives up none if the counts are too small. large: see track::large_group.
void launch_give_up_noise(const GridPoints& points, const std::int32_t* counts, std::int64_t large,
                          TrackedPoint* tracked, std::uint8_t* fresh, StreamHandle stream);

/// Points in the memory of another GPU.
struct HaloSource {
  const TrackedPoint* tracked;  ///< [count]
  const std::uint8_t* fresh;    ///< [count]
  PointRange points;
};
/// Queues copying points from other GPUs whose memory this GPU can read (see allow_peer_access).
void launch_read_halo(std::span<const HaloSource> others, TrackedPoint* tracked, std::uint8_t* fresh,
                      StreamHandle stream);

/// Queues one task for every point next to fresh ones that is lost or contradicts a better one, starting from
/// its best measured neighbour.
void launch_recovery_tasks(const GridPoints& points, const TrackedPoint* tracked, const std::uint8_t* fresh,
                           const TaskList& tasks, StreamHandle stream);

// ---- statuses ----

/// Queues giving up small islands of points that only agree among themselves: they become low_correlation.
/// Correct for own points and the rows next to them, not beyond. supports: [count], scratch memory. dropped:
/// the points that were given up.
void launch_drop_unconfirmed(const GridPoints& points, TrackedPoint* tracked,
                             track::NeighbourSupport* supports, const PointList& dropped,
                             StreamHandle stream);
/// Queues undoing launch_drop_unconfirmed.
void launch_restore_dropped(const PointList& dropped, TrackedPoint* tracked, StreamHandle stream);

/// Bytes of device scratch memory of launch_classify_lost.
std::size_t classify_lost_workspace_bytes(std::int64_t count);
/// Queues setting the status of lost points that left an image of width x height px: out_of_image. Takes one
/// wave per step from a lost trackable point to the nearest measured one, and next to no time if none is
/// lost.
void launch_classify_lost(const GridPoints& points, TrackedPoint* tracked, int radius, int width, int height,
                          void* workspace, StreamHandle stream);

// ---- fields ----

/// Bytes of device scratch memory of launch_estimate_noise.
std::size_t noise_workspace_bytes(std::int64_t count);
/// Queues the noise of one image, in grey levels: the median (element n / 2) of the noise estimated from the
/// residual of each of the n measured points, in float; 0 if none is measured.
void launch_estimate_noise(const GridPoints& points, const TrackedPoint* tracked,
                           const track::NoiseGains& gains, int radius, double* noise, void* workspace,
                           StreamHandle stream);

/// Bytes of device scratch memory of launch_fill_field.
std::size_t fill_field_workspace_bytes(const GridPoints& points);
/// Queues all arrays of a field except strain. material: [count]; null if the reference is the original one.
/// Points that are too uncertain become low_correlation.
void launch_fill_field(const GridPoints& points, const TrackedPoint* tracked,
                       const track::MaterialPoint* material, const track::NoiseModel& noise,
                       const FieldArrays& field, void* workspace, StreamHandle stream);

/// Numbers of nodes of a field that have values, and of lost nodes (see is_lost).
struct NodeCounts {
  std::int32_t measured = 0, lost = 0;
};
/// Queues counting the measured and the lost nodes of a field.
void launch_count_nodes(const FieldArrays& field, std::int64_t nodes, NodeCounts* counts,
                        StreamHandle stream);

// ---- a later reference ----

/// Positions of points in a later reference, [count] each.
struct FollowedPoints {
  int *x = nullptr, *y = nullptr;
  track::MaterialPoint* material = nullptr;
};
/// Queues the positions of all points in an image of `size` px, in which `field` was measured. points.x,
/// points.y: positions in the original reference.
void launch_follow_points(const GridPoints& points, const FieldArrays& field, Size size,
                          const FollowedPoints& to, StreamHandle stream);

/// Queues moving the ROI into the later reference. roi, moved: u8, 0 or 255, device memory, of one size and
/// pitch.
void launch_move_roi(const GridPoints& points, const track::Cells& cells, ImageView roi,
                     const track::MaterialPoint* material, std::uint8_t* moved, StreamHandle stream);

}  // namespace dic::kernels
