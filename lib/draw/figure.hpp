#pragma once

#include <dic/draw.hpp>
#include <memory>
#include <opencv2/core.hpp>
#include <span>

#include "draw/cell_raster.hpp"
#include "draw/moved_grid.hpp"

namespace dic::draw {

/// One frame in the size of a figure. It is made once for all quantities.
class FrameDrawing {
 public:
  /// image: of the frame, or smaller with the same aspect, or empty. size: of the frame's image, px. The grid
  /// has to live as long. options: width and font.
  FrameDrawing(ImageView image, Size size, const MovedGrid& grid, const CanvasFactory& canvases,
               const FigureOptions& options);

  /// Draws values of the nodes [ny x nx]; see write_field_picture. options: width and font as above.
  void write(const std::filesystem::path& path, std::span<const float> values,
             const FigureOptions& options) const;

 private:
  const MovedGrid& grid_;
  CanvasFactory canvases_;
  double units_per_px_;  ///< units of the canvas per px of the image
  double resolution_;    ///< pixels per unit
  cv::Mat picture_;      ///< the image, 8-bit grey
  CellRaster cells_;
  Size size_;  ///< of the image, px
};

}  // namespace dic::draw
