#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <dic/probe.hpp>
#include <dic/track_files.hpp>
#include <set>
#include <string>

/// Options that `dic track` and `dic watch` share.
namespace dic::app {

struct TrackFlags {
  TrackJob job;
  std::string config, save_config;
  bool quiet = false, verbose = false;
};

/// Adds all options of a run except its frames, and those of these names.
void add_run_options(CLI::App& command, TrackFlags& flags, const std::set<std::string>& without = {});
/// Reads and writes the configuration file, and completes the job.
void apply_run_options(CLI::App& command, TrackFlags& flags);

/// The ends of an extensometer, "x1,y1,x2,y2". Throws CLI::ValidationError.
std::array<Position, 2> ends_of(const std::string& option, const std::string& text);

}  // namespace dic::app
