#pragma once

#include <dic/track.hpp>
#include <string>

namespace dic {

/// All settings of a run as a JSON object; the keys are the long names of the options of `dic track`.
std::string settings_json(const TrackJob& job);

/// The text of run.json (docs/file-formats.md). Numbers that do not exist are null.
std::string run_json(const TrackJob& job, const TrackSummary& summary);

}  // namespace dic
