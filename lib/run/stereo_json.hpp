#pragma once

#include <dic/stereo_files.hpp>
#include <string>

#include "run/run_json.hpp"

namespace dic::run {

/// All settings of a run with two cameras, as a JSON object.
std::string stereo_settings_json(const StereoJob& job);

/// The settings that decide about results, and the calibration as it was read: what a run must share with the
/// one that it continues.
std::string stereo_resume_settings(const StereoJob& job, const CameraRig& rig);

/// Describes one pair as in run.json, without line breaks.
std::string frame_json(const StereoFrameSummary& frame);
/// Reads the pair that such a text describes. Throws nlohmann::json::exception for other texts.
StereoFrameSummary stereo_frame_from_json(const std::string& text);

/// The text of run.json. While the run lasts, frames are only counted.
std::string stereo_run_json(const StereoJob& job, const StereoSummary& summary, RunState state);

}  // namespace dic::run
