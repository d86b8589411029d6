#pragma once

#include <CLI/CLI.hpp>
#include <dic/synth_stereo.hpp>
#include <optional>
#include <string>
#include <vector>

/// The part of `dic synth` that makes images of two cameras.
namespace dic::app {

/// Number of views of a target unless the user says otherwise.
constexpr int kUsualViews = 15;

struct SynthStereoFlags {
  bool on = false;
  StereoSynthOptions options;
  std::optional<TargetPattern> board;
  BoardSynthOptions views;
  std::string calibration;
  bool faces_left = false;
  double focal = 2500, camera_angle = 25;
  std::optional<double> distance;
  std::vector<double> distortion, wave, move, turn, stretch, bulge;
};

/// Adds --stereo and the options that need it.
void add_synth_stereo(CLI::App& command, SynthStereoFlags& flags);

/// Writes the images, the rig and the truth. Throws UsageError, FileError.
void write_synth_stereo(SynthStereoFlags& flags, const SynthOptions& image, const std::string& output,
                        int truth_step);

}  // namespace dic::app
