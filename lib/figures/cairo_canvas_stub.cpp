#include <dic/error.hpp>

#include "figures/cairo_canvas.hpp"

namespace dic::figures {

CanvasFactory canvases(Format format, double, const std::string&) {
  if (format != Format::png)
    throw UsageError("This dic was built without cairo and writes no " + std::string(to_string(format)) +
                     ": use --format png, or build it with libcairo2-dev installed.");
  return png_canvases();
}

}  // namespace dic::figures
