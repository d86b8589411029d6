#pragma once

#include <dic/track_files.hpp>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

/// Runs that several processes share, of one camera or of two (dic/track_parts.hpp, dic/stereo_parts.hpp).
namespace dic::run {

/// The folder of the parts of a result.
inline std::filesystem::path parts_folder(const std::filesystem::path& output) { return output / "parts"; }
/// Name of the folder of a part.
std::string part_name(std::size_t part);
/// True if the run in a folder is complete.
bool is_complete(const std::filesystem::path& folder);

/// Division of a job into runs of consecutive frames, each of them into bands of rows of the grid. Part k is
/// band k % bands of run k / bands.
struct Plan {
  std::vector<std::size_t> first;  ///< number of the first current frame of each run
  std::vector<int> rows = {0, 0};  ///< number of the first row of each band, and of all rows
  std::size_t bands() const { return rows.size() - 1; }
  std::size_t parts() const { return first.size() * bands(); }
  /// Number of the frame after the last one of a run. frames: number of all of them.
  std::size_t end(std::size_t run, std::size_t frames) const {
    return run + 1 < first.size() ? first[run + 1] : frames;
  }
};

/// Divides frames into runs. The first frame of a run is searched without a prediction, which costs as much
/// as several further frames.
std::vector<std::size_t> divide_frames(std::size_t frames, int processes);

bool is_planned(const std::filesystem::path& output);
/// Throws FileError.
void write_plan(const std::filesystem::path& output, std::size_t frames, const Plan& plan);
/// Throws FileError; UsageError if the plan is one of another number of frames.
Plan read_plan(const std::filesystem::path& output, std::size_t frames);

/// The files of a camera, each of them with one image. Throws UsageError for others.
std::vector<std::string> files_to_share(const std::vector<std::string>& frames);
/// Throws UsageError if the options of a job do not allow parts.
void check_can_be_divided(const TrackJob& job);

/// Adds the times of run.json of a part.
void add_seconds(const nlohmann::json& run, StageSeconds& sum);
/// Adds the machine of run.json of a part to the names of all, and its date if it is the earliest.
void add_origin(const nlohmann::json& run, std::string& hosts, std::string& date);

}  // namespace dic::run
