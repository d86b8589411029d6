#pragma once

#include <dic/draw.hpp>
#include <memory>
#include <opencv2/core.hpp>
#include <span>

#include "draw/cell_raster.hpp"
#include "draw/moved_grid.hpp"

namespace dic::draw {

/// A frame in the size of a figure, prepared once for all quantities.
class FrameDrawing {
 public:
  /// image: the image of the frame, or a smaller one with the same aspect ratio, or empty. size: size of the
  /// frame's image, px. options: only width, font and heading are used. The grid must outlive this object.
  FrameDrawing(ImageView image, Size size, const MovedGrid& grid, const CanvasFactory& canvases,
               const FigureOptions& options);

  /// Draws values of the nodes [ny x nx]; see write_field_picture(). options: same width and font as above.
  void write(const std::filesystem::path& path, std::span<const float> values,
             const FigureOptions& options) const;

 private:
  const MovedGrid& grid_;
  CanvasFactory canvases_;
  double units_per_px_;  ///< units of the canvas per px of the image
  double resolution_;    ///< pixels per unit of the canvas
  cv::Mat picture_;      ///< the image in 8-bit grey
  CellRaster cells_;
  Size size_;  ///< size of the image, px
};

}  // namespace dic::draw
