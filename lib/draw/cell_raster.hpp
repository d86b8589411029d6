#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <span>
#include <vector>

#include "draw/colour_scale.hpp"
#include "draw/moved_grid.hpp"

namespace dic::draw {

/// Which point every pixel of a picture shows: the same for all quantities of a frame.
class CellRaster {
 public:
  /// zoom: pixels of the picture per px of the image.
  CellRaster(const MovedGrid& grid, double zoom, cv::Size size);

  /// Lays the colours of values [ny x nx] over `picture` (R, G, B). smooth: bilinear between the nodes.
  void paint(cv::Mat& picture, std::span<const float> values, const ColourScale& scale, bool smooth,
             double opacity) const;

 private:
  struct Place {
    std::int32_t node = 0;      ///< of a grid with a border; in the border: nothing is drawn
    std::uint8_t s = 0, t = 0;  ///< where in the node's cell along i and j, 0 to 255
  };

  /// In the grid with a border of one node, where neighbours need no check.
  std::int32_t bordered_node(int i, int j) const { return (j + 1) * (grid_.width + 2) + i + 1; }
  std::vector<float> with_border(std::span<const float> values) const;
  void add_cell(std::int32_t node, const cv::Point2f (&corners)[4]);
  void add_triangle(std::int32_t node, const cv::Point2f (&corners)[3], const cv::Point2f (&places)[3]);

  cv::Size grid_, size_;
  std::vector<Place> places_;
};

}  // namespace dic::draw
