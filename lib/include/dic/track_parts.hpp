#pragma once

#include <dic/export.hpp>
#include <dic/track_files.hpp>
#include <vector>

/// A sequence that several processes measure together, on one machine or on several with a common file
/// system:
///
/// 1. one process plans: plan_parts(job, processes);
/// 2. each process measures its share of the parts, in any order: track_files(part);
/// 3. one process joins the parts when all are complete: join_parts(job).
///
/// A part consists of consecutive frames (or a band of rows of the grid) and has its own result in
/// OUTPUT/parts, so that the work of a process survives it. Processes that start again with TrackJob::resume,
/// in any number, continue the same parts.
namespace dic {

/// Divides a job into parts for so many processes, and records how in the folder of the result. With
/// job.resume, returns the parts of an earlier division if there is one, and none if the result is complete.
/// Throws UsageError (a video, a reference strategy other than first, a noise floor, other frames than
/// before), FileError.
DIC_API std::vector<TrackJob> plan_parts(const TrackJob& job, int processes);

/// Returns the parts that another process planned. Throws UsageError, FileError.
DIC_API std::vector<TrackJob> planned_parts(const TrackJob& job);

/// Joins the parts into one result: result.vtkhdf, whose arrays are virtual datasets (the values stay in the
/// parts), run.json, tables and pictures. Throws FileError, also if a part is not complete.
DIC_API TrackSummary join_parts(const TrackJob& job);

}  // namespace dic
