#pragma once

#include <dic/export.hpp>
#include <dic/track_files.hpp>
#include <vector>

/// A sequence that several processes measure together, on one machine or on several with a common file
/// system:
///
/// 1. one process plans: plan_parts(job, processes);
/// 2. each measures its share of the parts, in any order: track_files(part);
/// 3. one joins them, once all have come to their end: join_parts(job).
///
/// A part is a run of frames that follow each other, with a result of its own in OUTPUT/parts: what a process
/// has done is not lost with it. Processes that begin anew with TrackJob::resume, as many as one likes, go on
/// with the same parts.
namespace dic {

/// Divides the current frames of a job into at most `most` parts, and writes down how. With job.resume: as
/// they were divided before, if they were; no parts where the result is there already. Throws UsageError (a
/// video, a reference strategy other than first, a noise floor, other frames than before), FileError.
DIC_API std::vector<TrackJob> plan_parts(const TrackJob& job, int processes);

/// The parts that another process has planned. Throws UsageError, FileError.
DIC_API std::vector<TrackJob> planned_parts(const TrackJob& job);

/// Makes one result of the parts: result.vtkhdf, whose arrays are virtual datasets (the values stay in the
/// parts), run.json, tables and pictures. Throws FileError, also where a part is not complete.
DIC_API TrackSummary join_parts(const TrackJob& job);

}  // namespace dic
