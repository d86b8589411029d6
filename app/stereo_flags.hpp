#pragma once

#include <CLI/CLI.hpp>
#include <dic/stereo_files.hpp>
#include <string>

/// Options that `dic stereo`, `dic watch` with two folders and `dic live` with two cameras share.
namespace dic::app {

struct StereoFlags {
  StereoOptions options;
  std::string calibration;
};

void add_calibration(CLI::App& command, StereoFlags& flags);
/// Adds the options about axes and the rig, under a heading of the help text. `options` must outlive the
/// command.
void add_stereo_options(CLI::App& command, StereoOptions& options, const std::string& group);
/// The job with these options, without right images. Throws CLI::RequiredError without a calibration.
StereoJob stereo_job(const TrackJob& track, const StereoFlags& flags);

}  // namespace dic::app
