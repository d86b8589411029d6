#pragma once

#include <dic/draw.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace dic::draw {

/// Points (x, y), those of a line in order of x. Coordinates on logarithmic axes are > 0.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool line = true;  ///< connected; else dots
};

/// Series over two axes with a legend.
struct Chart {
  std::string title, x_label, y_label;
  std::vector<double> x_ticks;      ///< sorted, not empty
  double y_mark = 0;                ///< shown and drawn darker; 0 = none
  std::vector<Series> series;       ///< with at least one point in all
  bool log_x = true, log_y = true;  ///< logarithmic axes; else linear
};

/// Draws a chart. Throws FileError.
void write_chart(const std::filesystem::path& path, const Chart& chart,
                 const CanvasFactory& canvases = png_canvases());

}  // namespace dic::draw
