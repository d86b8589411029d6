#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/fields.hpp>
#include <dic/kernels/refine.hpp>
#include <dic/shared/coarse_field.hpp>
#include <dic/shared/correlation.hpp>
#include <dic/shared/point_range.hpp>
#include <dic/shared/track_rules.hpp>
#include <span>

/// The points of a frame between search, refinement and field: starts, recovery, statuses, by the rules of
/// <dic/shared/track_rules.hpp>. All pointers are device memory.
///
/// Lists, starts, tasks and statuses are of own points (GridPoints::own); peaks, accepted results and fields
/// of those that are passed.
///
/// The order of lists differs from run to run; results do not depend on it. A count is set to zero by the
/// launch that fills its list.
namespace dic::kernels {

using track::PointRange;

/// The points of a grid in one reference, in the order of its rows. Where several GPUs measure them, each
/// lists, starts and refines its own, and has the results of those around (the halo).
struct GridPoints {
  int nx = 0, ny = 0;                       ///< nodes
  const std::int32_t* point_at = nullptr;   ///< [ny * nx]: point of a node; -1 outside the ROI
  const std::int32_t* node_of = nullptr;    ///< [count]: node of a point
  const int *x = nullptr, *y = nullptr;     ///< [count]: subset centres, reference pixels
  const PreparedSubset* subsets = nullptr;  ///< [count]; points whose status is not ok are not searched
  std::int64_t count = 0;
  PointRange own{0, count};    ///< measured on this GPU
  PointRange known{0, count};  ///< own ones, and at least track::kIslandReach rows of nodes around them
};

/// Where the refinement of a point begins: `shape` relative to a whole-pixel displacement (u, v).
struct PointStart {
  std::int32_t u = 0, v = 0;
  RelativeShape shape;
  float score = -1;  ///< zncc at whole pixels; -1: not searched yet
};

/// The result of a point so far. `result.shape` is relative to (u, v).
struct TrackedPoint {
  std::int32_t u = 0, v = 0;
  RefineResult result;
};

/// Some points, in any order; memory for all.
struct PointList {
  std::int32_t* points = nullptr;
  std::int32_t* count = nullptr;
};

/// Queues writing n counts, at most 32, to pinned memory. A copy would wait for copies of whole fields that
/// are in progress; this does not.
void launch_store_counts(const std::int32_t* counts, int n, std::int32_t* on_host, StreamHandle stream);

/// Queues marking those of `count` subsets whose points could not be followed to this reference.
void launch_mark_lost(const track::MaterialPoint* material, std::int64_t count, PreparedSubset* subsets,
                      StreamHandle stream);

// ---- starts ----

/// Queues starts where the points were in the frame before (all shapes 0 where `last` is null): the shape of
/// the point itself, or of its best neighbour, continued to it. `without`: trackable points without such a
/// start. All scores are -1.
void launch_starts_from_last(const GridPoints& points, const TrackedPoint* last, PointStart* starts,
                             const PointList& without, StreamHandle stream);

/// Queues starts of `n` points, scores -1, from a coarse displacement field. u, v: see track::sample.
void launch_starts_from_field(const GridPoints& points, const std::int32_t* list, std::int64_t n,
                              const track::FieldLattice& lattice, const float* u, const float* v,
                              PointStart* starts, StreamHandle stream);

/// Queues dividing the trackable ones of `n` points (list null: of all own ones) into those whose subset is
/// the whole square of 2 * radius + 1 px, and those that the border or the ROI clips. radius 0: into
/// rectangles of any size, and those of any other shape.
void launch_split_subsets(const GridPoints& points, const std::int32_t* list, std::int64_t n, int radius,
                          const PointList& whole, const PointList& clipped, StreamHandle stream);

/// Queues the positions of `n` points' subsets and of their windows in image 0: references[k] is the
/// top-left pixel of the square (outside the image where the border clips it), windows[k] lies the rounded
/// displacement of the start, less `range`, away from it.
void launch_place_windows(const GridPoints& points, const std::int32_t* list, std::int64_t n, int radius,
                          int range, const PointStart* starts, PatchPosition* references,
                          PatchPosition* windows, StreamHandle stream);

/// Queues taking peaks[k], of what launch_place_windows placed for point list[k], as its start where the
/// score is no worse: displacement with the peak's fit, score; the slopes stay. Where `follow`, the points
/// whose peak lies on the border of its window are listed in `again`, for another search around it.
void launch_take_peaks(const std::int32_t* list, std::int64_t n, const PatchPosition* references,
                       const PatchPosition* windows, const Peak* peaks, bool follow, PointStart* starts,
                       const PointList& again, StreamHandle stream);

/// Queues the list of the trackable points whose start scores less than `least`.
void launch_list_lost_starts(const GridPoints& points, const PointStart* starts, float least,
                             const PointList& lost, StreamHandle stream);

/// Queues taking the other start for those of `n` points where it scores better.
void launch_keep_better_starts(std::int64_t n, const PointStart* others, PointStart* starts,
                               StreamHandle stream);

// ---- recovery ----

/// Queues the state of points that are not refined yet (the status of the reference, or low_correlation), and
/// one task for every own point, in their order: the refinement then finds the pixels of neighbours in the
/// cache. A point that is not trackable, or whose start scores less than `least`, has a task of no_point.
/// order: of the shape function; terms beyond it are dropped.
void launch_initial_tasks(const GridPoints& points, const PointStart* starts, float least, int order,
                          TrackedPoint* tracked, RefineTask* tasks, std::int32_t* count, StreamHandle stream);

/// Queues one task for every trackable point that is not measured and whose start scores at least `least` and
/// less than `below`. tasks null: they are only counted.
void launch_tasks_from_starts(const GridPoints& points, const TrackedPoint* tracked, const PointStart* starts,
                              float least, float below, int order, RefineTask* tasks, std::int32_t* count,
                              StreamHandle stream);

/// Queues taking results that are better than the state of their point. No two tasks are of one point.
/// fresh: [count], 1 where the point is measured by its new result, else 0.
void launch_accept_results(const GridPoints& points, const RefineTasks& tasks, const RefineResult* results,
                           TrackedPoint* tracked, std::uint8_t* fresh, StreamHandle stream);

/// Points in the memory of another GPU.
struct HaloSource {
  const TrackedPoint* tracked;  ///< [count]
  const std::uint8_t* fresh;    ///< [count]
  PointRange points;
};
/// Queues copying points from other GPUs, whose memory can be read from here (see allow_peer_access).
void launch_read_halo(std::span<const HaloSource> others, TrackedPoint* tracked, std::uint8_t* fresh,
                      StreamHandle stream);

/// Queues one task for every point beside fresh ones that is lost or contradicts a better one, from its best
/// measured neighbour.
void launch_recovery_tasks(const GridPoints& points, const TrackedPoint* tracked, const std::uint8_t* fresh,
                           RefineTask* tasks, std::int32_t* count, StreamHandle stream);

// ---- statuses ----

/// Queues giving up small islands of points that only agree among themselves: low_correlation. Correct for
/// own points and the rows beside them, not beyond. supports: [count], scratch memory. dropped: the points
/// that were given up.
void launch_drop_unconfirmed(const GridPoints& points, TrackedPoint* tracked,
                             track::NeighbourSupport* supports, const PointList& dropped,
                             StreamHandle stream);
/// Queues undoing launch_drop_unconfirmed.
void launch_restore_dropped(const PointList& dropped, TrackedPoint* tracked, StreamHandle stream);

/// Bytes of scratch memory of launch_classify_lost, on the device.
std::size_t classify_lost_workspace_bytes(std::int64_t count);
/// Queues setting the status of lost points that left an image of width x height px: out_of_image. Takes one
/// wave per step from a lost trackable point to the nearest measured one; where none is lost, next to
/// nothing.
void launch_classify_lost(const GridPoints& points, TrackedPoint* tracked, int radius, int width, int height,
                          void* workspace, StreamHandle stream);

// ---- fields ----

/// Bytes of scratch memory of launch_estimate_noise, on the device.
std::size_t noise_workspace_bytes(std::int64_t count);
/// Queues the noise of one image, grey levels: the median (element n / 2) of the noise estimated from the
/// residual of each of the n measured points, in float; 0 where none is measured. Also launch_find_slopes,
/// since this reads all points; slopes null: without.
void launch_estimate_noise(const GridPoints& points, const TrackedPoint* tracked,
                           const track::NoiseGains& gains, int radius, double* noise, track::Slopes* slopes,
                           void* workspace, StreamHandle stream);

/// Queues the slopes of all points: [count].
void launch_find_slopes(const GridPoints& points, const TrackedPoint* tracked, track::Slopes* slopes,
                        StreamHandle stream);

/// Bytes of scratch memory of launch_fill_field, on the device.
std::size_t fill_field_workspace_bytes(const GridPoints& points);

/// Queues all arrays of a field but strain. material: [count]; null where the reference is the original one.
/// slopes: [count], see launch_find_slopes; not read where noise.order is not 1. Points that are too uncertain
/// become low_correlation.
void launch_fill_field(const GridPoints& points, const TrackedPoint* tracked, const track::Slopes* slopes,
                       const track::MaterialPoint* material, const track::NoiseModel& noise,
                       const FieldArrays& field, void* workspace, StreamHandle stream);

/// Nodes of a field that have values, and those that are lost (see is_lost).
struct NodeCounts {
  std::int32_t measured = 0, lost = 0;
};
/// Queues counting them.
void launch_count_nodes(const FieldArrays& field, std::int64_t nodes, NodeCounts* counts,
                        StreamHandle stream);

// ---- a later reference ----

/// Queues the positions of all points in an image of width x height px, in which `field` was measured.
/// points.x, points.y: in the original reference. x, y, material: [count].
void launch_follow_points(const GridPoints& points, const FieldArrays& field, int width, int height, int* x,
                          int* y, track::MaterialPoint* material, StreamHandle stream);

/// Queues moving the ROI into that image. roi, moved: u8, 0 or 255, device memory, of one size and pitch.
void launch_move_roi(const GridPoints& points, const track::Cells& cells, ImageView roi,
                     const track::MaterialPoint* material, std::uint8_t* moved, StreamHandle stream);

}  // namespace dic::kernels
