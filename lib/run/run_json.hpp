#pragma once

#include <dic/track_files.hpp>
#include <string>

namespace dic::run {

/// All settings of a run as a JSON object; the keys are the long names of the options of `dic track`.
std::string settings_json(const TrackJob& job);

/// The part of settings_json that decides about results, and the style of the tables: what a run must have in
/// common with the one that it goes on with.
std::string resume_settings(const TrackJob& job);
/// Names of what differs between two such texts, as "subset, step".
std::string differences(const std::string& one, const std::string& other);

/// One frame as run.json has it, without line breaks.
std::string frame_json(const FrameSummary& frame);
/// The frame that such a text describes. Throws nlohmann::json::exception where it describes none.
FrameSummary frame_from_json(const std::string& text);

/// How far a run is.
enum class RunState : std::uint8_t { running, complete, interrupted };

/// The text of run.json (docs/file-formats.md). Numbers that do not exist are null.
/// While the run lasts, the frames
/// are only counted.
std::string run_json(const TrackJob& job, const TrackSummary& summary, RunState state);

}  // namespace dic::run
