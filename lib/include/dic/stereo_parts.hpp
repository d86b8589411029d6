#pragma once

#include <dic/export.hpp>
#include <dic/stereo_files.hpp>
#include <vector>

/// A measurement with two cameras that several processes share, as dic/track_parts.hpp is one with one
/// camera. A part consists of the references and consecutive pairs; each part measures the references.
namespace dic {

/// Divides a job into parts for so many processes, and records how in the folder of the result. With
/// job.track.resume, returns the parts of an earlier division if there is one, and none if the result is
/// complete. Throws UsageError (videos, a reference strategy other than first, other pairs than before),
/// FileError.
DIC_API std::vector<StereoJob> plan_stereo_parts(const StereoJob& job, int processes);

/// Returns the parts that another process planned. Throws UsageError, FileError.
DIC_API std::vector<StereoJob> planned_stereo_parts(const StereoJob& job);

/// Joins the parts into one result, with the files of a run of one process, and removes the parts. Throws
/// FileError, also if a part is not complete.
DIC_API StereoSummary join_stereo_parts(const StereoJob& job);

}  // namespace dic
