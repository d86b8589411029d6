#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/image.hpp>

#include "core/parallel.hpp"
#include "core/raw_vector.hpp"

namespace dic::core {

/// Counts the mask pixels inside any rectangle with a summed-area table, which takes 4 bytes per pixel.
class MaskCounts {
 public:
  /// mask: u8, a pixel that is not zero is inside; the rectangles must lie within the mask.
  MaskCounts(ImageView mask, ThreadPool& pool)
      : stride_(mask.width + 1), table_(static_cast<std::size_t>(stride_) * (mask.height + 1)) {
    std::fill_n(table_.begin(), stride_, 0);
    for_each_row(pool, mask.height, [&](int y) {
      const std::uint8_t* row = mask.row<std::uint8_t>(y);
      std::uint32_t* out = &table_[static_cast<std::size_t>(y + 1) * stride_];
      std::uint32_t sum = *out++ = 0;
      for (int x = 0; x < mask.width; ++x) out[x] = sum += row[x] != 0;
    });
    constexpr std::int64_t kColumns = 256;
    pool.parallel_for(stride_, kColumns, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::uint32_t* row = table_.data(); row != &table_.back() + 1 - stride_; row += stride_)
        for (std::int64_t x = begin; x < end; ++x) row[stride_ + x] += row[x];
    });
  }

  std::int64_t inside(int left, int top, int width, int height) const {
    const std::uint32_t *upper = at(left, top), *lower = at(left, top + height);
    return std::uint32_t{lower[width] - lower[0] - upper[width] + upper[0]};
  }

 private:
  /// The count of inside pixels to the left of x and above y.
  const std::uint32_t* at(int x, int y) const {
    return table_.data() + static_cast<std::size_t>(y) * stride_ + x;
  }

  int stride_;
  RawVector<std::uint32_t> table_;
};

}  // namespace dic::core
