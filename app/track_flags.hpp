#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <dic/probe.hpp>
#include <dic/track_files.hpp>
#include <string>
#include <vector>

/// Options that several commands share.
namespace dic::app {

struct TrackFlags {
  TrackJob job;
  std::string config, save_config;
  bool quiet = false, verbose = false;
};

/// Adds all options of a run except its frames, and except those named by `without`.
void add_run_options(CLI::App& command, TrackFlags& flags, const std::vector<std::string>& without = {});
/// Adds those of a run with two cameras. The options of one camera are understood and not shown: a value
/// other than the default ends with the reason why there is no such option.
void add_stereo_run_options(CLI::App& command, TrackFlags& flags);
/// Reads and writes the configuration file, and completes the job.
void apply_run_options(CLI::App& command, TrackFlags& flags);

/// The ends of an extensometer, "x1,y1,x2,y2". Throws CLI::ValidationError.
std::array<Position, 2> ends_of(const std::string& option, const std::string& text);

}  // namespace dic::app
