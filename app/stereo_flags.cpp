#include "stereo_flags.hpp"

#include <array>
#include <sstream>

#include "commands.hpp"

namespace dic::app {

namespace {

/// Reads "x,y x,y x,y".
std::array<Roi::Vertex, 3> three_points(const std::string& text) {
  std::array<Roi::Vertex, 3> points;
  std::istringstream stream(text);
  char comma[3] = {};
  for (std::size_t k = 0; k < points.size(); ++k) stream >> points[k].x >> comma[k] >> points[k].y;
  std::string rest;
  if (!stream || comma[0] != ',' || comma[1] != ',' || comma[2] != ',' || stream >> rest)
    throw CLI::ValidationError("--axes-points", "needs three points \"x,y x,y x,y\", got \"" + text + "\"");
  return points;
}

}  // namespace

void add_calibration(CLI::App& command, StereoFlags& flags) {
  command
      .add_option("--calibration", flags.calibration,
                  "Calibration of both cameras: a file of dic calibrate or of another program")
      ->type_name("FILE")
      ->default_str("");
}

void add_stereo_options(CLI::App& command, StereoFlags& flags, const std::string& group) {
  StereoOptions& options = flags.options;
  command.option_defaults()->group(group);
  add_choice(
      command, "--axes", options.axes,
      "Axes of positions and displacements: those of the left camera, of the best-fit plane or cylinder, or "
      "through three points");
  command
      .add_option_function<std::string>(
          "--axes-points",
          [&options](const std::string& text) {
            if (!text.empty()) options.axes_points = three_points(text);
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
