#pragma once

#include <array>
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
  struct Place {
    std::int32_t node = 0;      ///< of a grid with a border; in the border: nothing is drawn
    std::uint8_t s = 0, t = 0;  ///< where in the node's cell along i and j, 0 to 255
  };

  /// zoom: pixels of the picture per px of the image.
  CellRaster(const MovedGrid& grid, double zoom, cv::Size size);

  std::span<const Place> row(int y) const {
    return std::span(places_).subspan(static_cast<std::size_t>(y) * size_.width, size_.width);
  }
  /// Nodes from row to row of the grid with a border.
  int stride() const { return grid_.width + 2; }
  /// Values [ny x nx] with a border of NaN, by the nodes of the places.
  std::vector<float> with_border(std::span<const float> values) const;

 private:
  /// In the grid with a border of one node, where neighbours need no check.
  std::int32_t bordered_node(int i, int j) const { return (j + 1) * stride() + i + 1; }
  void add_cell(std::int32_t node, const cv::Point2f (&corners)[4]);
  void add_triangle(std::int32_t node, const cv::Point2f (&corners)[3], const cv::Point2f (&places)[3]);

  cv::Size grid_, size_;
  std::vector<Place> places_;
};

/// Lays the colours of values over a grey picture, row by row.
class CellPainter {
 public:
  /// values: [ny x nx]. smooth: bilinear between the nodes. The raster has to live as long.
  CellPainter(const CellRaster& raster, std::span<const float> values, const ColourScale& scale, bool smooth,
              double opacity);

  /// grey: row y of the picture. rgb: as many pixels R, G, B.
  void paint(int y, const std::uint8_t* grey, std::uint8_t* rgb) const;

 private:
  static constexpr std::uint64_t kChannels = 0x0001'0001'0001;  ///< three numbers of 16 bits in one

  const CellRaster& raster_;
  std::vector<float> places_;  ///< of the values among the colours, with a border
  ValueRange ends_;            ///< of the places that are shown
  /// What colours, and each grey level, add to 256 times the R, G, B that are shown. A half is in the
  /// colours.
  std::array<std::uint64_t, 256> colours_;
  std::uint64_t grey_;
  bool smooth_;
};

}  // namespace dic::draw
