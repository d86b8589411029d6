#pragma once

#include <cstdint>
#include <dic/draw.hpp>
#include <dic/shared/enum_names.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "figures/cairo_canvas.hpp"

namespace dic::figures {

/// Units that figures show strains in.
enum class StrainUnit : std::uint8_t { one, percent, microstrain };
}  // namespace dic::figures

namespace dic {

template <>
struct EnumNames<figures::StrainUnit> {
  static constexpr EnumName<figures::StrainUnit> table[] = {
      {figures::StrainUnit::one, "1"},
      {figures::StrainUnit::percent, "%"},
      {figures::StrainUnit::microstrain, "microstrain"}};
};

}  // namespace dic

namespace dic::figures {

/// A job of `dic plot`.
struct PlotJob {
  std::filesystem::path result;
  std::filesystem::path output = "dic_figures";
  bool force = false;  ///< replace existing figures
  std::vector<std::string> fields = {};  ///< empty = kDrawnArrays; with two cameras shape, motion and strain
  std::vector<int> frames = {};  ///< numbers from 1, negative ones from the end; empty = the last frame
  bool all_frames = false;
  std::vector<std::string> images = {};  ///< frames as for `dic track`; empty = the files of the run
  bool background = true;                ///< draw the images under the fields
  bool own_range = false;                ///< each frame has its own range; false: one for the whole sequence
  StrainUnit strain_unit = StrainUnit::one;  ///< unit of strains, also of a range of their colours
  FigureOptions figure = {};                 ///< colour map, range, smooth, lines, arrows
  std::string heading = "auto";              ///< "auto": name and time of the frame; "none"; or a text
  Format format = Format::png;
  double width_mm = 120;  ///< width of a figure
  double font_pt = 9;
  std::string font = "sans-serif";
  double dots_per_inch = 300;
  int threads = 0;
};

struct PlotSummary {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> left_out;     ///< fields that have names instead of numbers
  int without_image = 0;      ///< number of frames whose image was not found
  std::string image_problem;  ///< why the first of them was not found
};

/// Draws the figures of a job. Throws UsageError, FileError.
PlotSummary plot(const PlotJob& job);

}  // namespace dic::figures
