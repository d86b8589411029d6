#pragma once

#include <dic/live.hpp>
#include <string>
#include <vector>

namespace dic::live {

/// Properties that all lines of a measurement share.
struct LineContext {
  std::vector<Position> points;
  std::vector<std::array<Position, 2>> extensometers;
  double length_factor = 1;  ///< length unit per px
  std::string length_unit = "px";
  bool is_surface = false;               ///< two cameras measure: points and extensometers are in space, mm
  StereoAxes axes = StereoAxes::camera;  ///< axes of positions and displacements in space
};

/// The line of JSON for a frame: docs/live.md describes its keys. summary: of the frame's field.
std::string frame_line(const LineContext& context, const LiveFrame& frame, const FrameSummary& summary);
/// The line for something else that happened, with its sentence.
std::string note_line(const std::string& event, const std::string& text);
/// The line before all others.
std::string start_line(const LineContext& context, const TrackSummary& track, const LiveSummary& live);
/// The line after all others.
std::string end_line(const LiveSummary& summary);

}  // namespace dic::live
