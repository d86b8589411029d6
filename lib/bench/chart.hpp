#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace dic::bench {

/// A line of a chart: points (x, y), both > 0, in order of x.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// Lines over two logarithmic axes with a legend.
struct Chart {
  std::string title, x_label, y_label;
  std::vector<Series> series;
};

/// Draws a chart as PNG. Throws FileError.
void write_chart(const std::filesystem::path& path, const Chart& chart);

}  // namespace dic::bench
