#pragma once

#include <algorithm>

#include "correlate/backend.hpp"

namespace dic::correlate {

/// The part of a window that lies inside its image, in window coordinates: columns x0 .. x1 - 1, rows
/// y0 .. y1 - 1; empty if x1 <= x0 or y1 <= y0.
struct Available {
  ImageView image;
  std::int64_t x = 0, y = 0;  ///< position of the window's (0, 0) in the image
  int x0 = 0, x1 = 0, y0 = 0, y1 = 0;
};

inline Available available(const Job& job, std::int64_t window) {
  const PatchPosition& at = job.search.positions[static_cast<std::size_t>(window)];
  const ImageView& image = job.search.images[static_cast<std::size_t>(at.image)];
  return {image,
          at.x,
          at.y,
          std::max(0, -at.x),
          std::min(job.search.size.width, image.width - at.x),
          std::max(0, -at.y),
          std::min(job.search.size.height, image.height - at.y)};
}

}  // namespace dic::correlate
