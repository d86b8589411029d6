#pragma once

#include <dic/draw.hpp>
#include <dic/export.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace dic::draw {

/// A series of points (x, y), sorted by x if they form a line. Coordinates on logarithmic axes are > 0.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool line = true;  ///< true: connected by a line; false: dots
};

/// A chart of series over two axes with a legend.
struct Chart {
  std::string title, x_label, y_label;
  std::vector<double> x_ticks;      ///< sorted, not empty
  double y_mark = 0;                ///< value of y that is always shown, and drawn darker; 0 = none
  std::vector<Series> series;       ///< one of them or more must have a point
  bool log_x = true, log_y = true;  ///< true: logarithmic axis; false: linear
};

/// Draws a chart into a file. Throws FileError.
DIC_INTERNAL_API void write_chart(const std::filesystem::path& path, const Chart& chart,
                                  const CanvasFactory& canvases = png_canvases());

}  // namespace dic::draw
