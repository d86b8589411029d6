#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace dic::bench {

/// Points (x, y), both > 0; those of a line in order of x.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool line = true;  ///< connected; else dots
};

/// Series over two logarithmic axes with a legend.
struct Chart {
  std::string title, x_label, y_label;
  std::vector<double> x_ticks;  ///< sorted, not empty
  double y_mark = 0;            ///< shown and drawn darker; 0 = none
  std::vector<Series> series;   ///< with at least one point in all
};

/// Draws a chart as PNG. Throws FileError.
void write_chart(const std::filesystem::path& path, const Chart& chart);

}  // namespace dic::bench
