#pragma once

#include <dic/io.hpp>
#include <dic/track_files.hpp>

namespace dic::run {

/// Notes machine and time in the summary of a run that begins.
void note_origin(TrackSummary& summary);
/// Notes how the reference is measured. options: including those that were chosen from the reference.
void note_reference(TrackSummary& summary, Size image, const TrackOptions& options);
/// Describes the result of a run. summary: with reference, image and options.
ResultInfo describe_result(const TrackJob& job, const TrackSummary& summary, bool times_in_seconds);

}  // namespace dic::run
