#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/track.hpp>

namespace dic::analysis {

/// The smallest rectangle that holds every pixel of a u8 mask that is not zero; without any, its size is 0.
inline Roi::Rect bounding_box(ImageView mask) {
  int x0 = mask.width, x1 = -1, y0 = mask.height, y1 = -1;
  for (int y = 0; y < mask.height; ++y) {
    const std::uint8_t* row = mask.row<std::uint8_t>(y);
    const auto inside = [](std::uint8_t value) { return value != 0; };
    const std::uint8_t* first = std::find_if(row, row + mask.width, inside);
    if (first == row + mask.width) continue;
    int last = mask.width - 1;
    while (row[last] == 0) --last;
    x0 = std::min(x0, static_cast<int>(first - row));
    x1 = std::max(x1, last);
    y0 = std::min(y0, y);
    y1 = y;
  }
  return {x0, y0, std::max(0, x1 - x0 + 1), std::max(0, y1 - y0 + 1)};
}

/// True where the mask is not zero anywhere in the rectangle.
inline bool fills(ImageView mask, const Roi::Rect& rect) {
  for (int y = rect.y; y < rect.y + rect.height; ++y) {
    const std::uint8_t* row = mask.row<std::uint8_t>(y) + rect.x;
    if (std::find(row, row + rect.width, 0) != row + rect.width) return false;
  }
  return true;
}

}  // namespace dic::analysis
