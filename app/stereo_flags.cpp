#include "stereo_flags.hpp"

#include <dic/error.hpp>

#include "commands.hpp"

namespace dic::app {

void add_calibration(CLI::App& command, StereoFlags& flags) {
  command
      .add_option("--calibration", flags.calibration,
                  "Calibration of both cameras: a file of dic calibrate or of another program")
      ->type_name("FILE")
      ->default_str("");
}

void add_stereo_options(CLI::App& command, StereoOptions& options, const std::string& group) {
  command.option_defaults()->group(group);
  add_choice(
      command, "--axes", options.axes,
      "Axes of positions and displacements: those of the left camera, of the best-fit plane or cylinder, or "
      "through three points");
  command
      .add_option_function<std::string>(
          "--axes-points",
          [&options](const std::string& text) {
            try {
              if (!text.empty()) options.axes_points = parse_axes_points(text);
            } catch (const UsageError& problem) {
              throw CLI::ValidationError("--axes-points", problem.what());
            }
          },
          "For --axes points: the origin, a point on x and a point in the plane of x and y, px of the left "
          "reference")
      ->type_name("\"x,y x,y x,y\"")
      ->default_str("");
  command.add_flag(
      "--correct-rig", options.correct_rig,
      "Correct the pose of the right camera from the references, if it moved since its calibration");
  command.add_flag("--remove-rigid-motion", options.remove_rigid_motion,
                   "Subtract the motion as a rigid body from the displacements");
}

StereoJob stereo_job(const TrackJob& track, const StereoFlags& flags) {
  if (flags.calibration.empty()) throw CLI::RequiredError("--calibration");
  StereoJob job;
  job.track = track;
  job.options = flags.options;
  job.calibration = flags.calibration;
  return job;
}

}  // namespace dic::app
