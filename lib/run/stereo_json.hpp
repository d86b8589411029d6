#pragma once

#include <dic/stereo_files.hpp>
#include <string>

namespace dic::run {

/// Returns the settings of a run with two cameras as a JSON object, whose keys are the long names of the
/// options of `dic stereo`.
std::string stereo_settings_json(const StereoJob& job);
/// Returns the text of run.json (docs/file-formats.md). Missing numbers are null.
std::string stereo_run_json(const StereoJob& job, const StereoSummary& summary);

}  // namespace dic::run
