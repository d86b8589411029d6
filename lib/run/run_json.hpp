#pragma once

#include <dic/track_files.hpp>
#include <filesystem>
#include <string>

namespace dic::run {

/// Returns all settings of a run as a JSON object, whose keys are the long names of the options of `dic
/// track`.
std::string settings_json(const TrackJob& job);

/// Returns the settings that decide about results, and the style of the tables: what a run must share with
/// the one that it continues.
std::string resume_settings(const TrackJob& job);
/// Notes in a file run.json that further pictures were drawn. Throws FileError.
void note_pictures(const std::filesystem::path& run_json, Pictures pictures, std::int64_t frames_drawn);
/// Names of the settings that differ between two such texts, as "subset, step".
std::string differences(const std::string& one, const std::string& other);

/// Describes one frame as in run.json, without line breaks.
std::string frame_json(const FrameSummary& frame);
/// Reads the frame that such a text describes. Throws nlohmann::json::exception for other texts.
FrameSummary frame_from_json(const std::string& text);

/// Progress of a run.
enum class RunState : std::uint8_t { running, complete, interrupted };
}  // namespace dic::run

namespace dic {
template <>
struct EnumNames<run::RunState> {
  static constexpr EnumName<run::RunState> table[] = {{run::RunState::running, "running"},
                                                      {run::RunState::complete, "complete"},
                                                      {run::RunState::interrupted, "interrupted"}};
};
}  // namespace dic

namespace dic::run {

/// Returns the text of run.json (docs/file-formats.md). Missing numbers are null. While the run lasts,
/// frames are only counted. settings: a JSON object, as of settings_json() or stereo_settings_json().
std::string run_json(const TrackJob& job, const std::string& settings, const TrackSummary& summary,
                     RunState state);

}  // namespace dic::run
