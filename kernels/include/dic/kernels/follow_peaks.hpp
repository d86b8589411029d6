#pragma once

#include <dic/kernels/ncc.hpp>
#include <dic/kernels/points.hpp>
#include <string>

namespace dic::kernels {

/// The search of points in windows of `range` px around their starts. Subsets may be clipped to smaller
/// rectangles, but all of their pixels count.
struct FollowedSearch {
  const std::int32_t* list;  ///< points to search; -1: none
  int range;                 ///< px
  int steps;                 ///< largest number of moves of a window
  PointStart* starts;        ///< starts of all points
  PatchPosition* windows;    ///< [pairs], scratch memory
  Peak* peaks;               ///< [pairs], scratch memory
};

/// Why peaks of the job cannot be followed in one launch: one sentence, empty if they can.
std::string follow_unsupported_reason(const NccJob& job);
/// Queues, in one launch, the loop over launch_place_windows, the ZNCC peaks of the job and
/// launch_take_peaks. The loop ends for a point whose peak is not on the border of its window or is worse
/// than the last one, or after `steps` moves. The job is one to one, of the largest subsets, has images but
/// no positions, and as many pairs as `list` has points.
void launch_follow_peaks(const NccJob& job, const GridPoints& points, const FollowedSearch& search,
                         StreamHandle stream);

}  // namespace dic::kernels
