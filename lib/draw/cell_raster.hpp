#pragma once

#include <array>
#include <cstdint>
#include <opencv2/core.hpp>
#include <span>
#include <vector>

#include "draw/colour_scale.hpp"
#include "draw/moved_grid.hpp"

namespace dic::draw {

/// The point that each pixel of a picture shows; it is the same for all quantities of a frame.
class CellRaster {
 public:
  struct Place {
    std::int32_t node = 0;      ///< node in the grid with a border; nothing is drawn for nodes of the border
    std::uint8_t s = 0, t = 0;  ///< position in the node's cell along i and j, 0 to 255
  };

  /// zoom: pixels of the picture per px of the image.
  CellRaster(const MovedGrid& grid, double zoom, cv::Size size);

  std::span<const Place> row(int y) const {
    return std::span(pixels_).subspan(static_cast<std::size_t>(y) * size_.width, size_.width);
  }
  /// Number of nodes from row to row of the grid with a border.
  int stride() const { return grid_.width + 2; }
  /// The values [ny x nx] with a border of NaN, indexed by Place::node.
  std::vector<float> with_border(std::span<const float> values) const;

 private:
  /// Index of a node in the grid with a border of one node, in which neighbours need no check.
  std::int32_t bordered_node(int i, int j) const { return (j + 1) * stride() + i + 1; }
  void add_cell(std::int32_t node, const cv::Point2f (&corners)[4]);
  void add_triangle(std::int32_t node, const cv::Point2f (&corners)[3], const cv::Point2f (&places)[3]);

  cv::Size grid_, size_;
  std::vector<Place> pixels_;  ///< row by row
};

/// Lays the colours of values over a grey picture, row by row.
class CellPainter {
 public:
  /// values: [ny x nx]. smooth: bilinear between the nodes. The raster must outlive this object.
  CellPainter(const CellRaster& raster, std::span<const float> values, const ColourScale& scale, bool smooth,
              double opacity);

  /// Paints row y. grey: row y of the grey picture. rgb: receives as many pixels R, G, B.
  void paint(int y, const std::uint8_t* grey, std::uint8_t* rgb) const;

 private:
  static constexpr std::uint64_t kChannels = 0x0001'0001'0001;  ///< 1 in three 16-bit fields of one number

  const CellRaster& raster_;
  std::vector<float> colour_places_;  ///< places of the values in the colour map, with a border
  ValueRange ends_;                   ///< range of the places that are shown
  /// Terms of 256 times the displayed R, G, B: of the colours (with 128 for rounding), and per grey level.
  std::array<std::uint64_t, 256> colours_;
  std::uint64_t grey_;
  bool smooth_;
};

}  // namespace dic::draw
