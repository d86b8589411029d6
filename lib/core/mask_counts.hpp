#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <vector>

namespace dic {

/// How many pixels of a mask are inside, for any rectangle, from a summed-area table: 4 bytes per pixel.
class MaskCounts {
 public:
  /// mask: u8, inside where not zero; the rectangles must lie within it.
  explicit MaskCounts(ImageView mask) : stride_(mask.width + 1) {
    table_.assign(static_cast<std::size_t>(stride_) * (mask.height + 1), 0);
    for (int y = 0; y < mask.height; ++y) {
      const std::uint8_t* row = mask.row<std::uint8_t>(y);
      const std::uint32_t* above = at(0, y);
      std::uint32_t* out = table_.data() + static_cast<std::size_t>(y + 1) * stride_;
      std::uint32_t sum = 0;
      for (int x = 0; x < mask.width; ++x) {
        sum += row[x] != 0;
        out[x + 1] = above[x + 1] + sum;
      }
    }
  }

  std::int64_t inside(int left, int top, int width, int height) const {
    const std::uint32_t *upper = at(left, top), *lower = at(left, top + height);
    return std::uint32_t{lower[width] - lower[0] - upper[width] + upper[0]};
  }

 private:
  /// Count of what lies left of x and above y.
  const std::uint32_t* at(int x, int y) const {
    return table_.data() + static_cast<std::size_t>(y) * stride_ + x;
  }

  int stride_;
  std::vector<std::uint32_t> table_;
};

}  // namespace dic
