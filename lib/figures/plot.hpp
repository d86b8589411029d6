#pragma once

#include <dic/draw.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "figures/cairo_canvas.hpp"

namespace dic::figures {

/// What `dic plot` draws.
struct PlotJob {
  std::filesystem::path result;
  std::filesystem::path output = "dic_figures";
  bool force = false;  ///< replace figures that are there
  std::vector<std::string> fields = {"u", "v", "exx", "eyy", "exy"};
  std::vector<int> frames = {};  ///< from 1; negative from the end; empty = the last
  bool all_frames = false;
  std::vector<std::string> images = {};  ///< of the frames, as `dic track` took them; empty = where they were
  bool background = true;                ///< the images under the fields
  bool own_range = false;                ///< for every frame; else one for the whole sequence
  FigureOptions figure = {};             ///< colour map, range, smooth, lines, arrows
  std::string heading = "auto";          ///< "auto": name and time of the frame; "none"; or a text
  Format format = Format::png;
  double width_mm = 120;  ///< of a figure
  double font_pt = 9;
  std::string font = "sans-serif";
  double dots_per_inch = 300;
  int threads = 0;
};

struct PlotSummary {
  std::vector<std::filesystem::path> files;
  int without_image = 0;      ///< frames whose image was not found
  std::string image_problem;  ///< why, of the first
};

/// Draws figures. Throws UsageError, FileError.
PlotSummary plot(const PlotJob& job);

}  // namespace dic::figures
