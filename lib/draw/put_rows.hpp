#pragma once

#include <cstdint>
#include <dic/image_io.hpp>
#include <opencv2/core/types.hpp>
#include <span>
#include <vector>

namespace dic::draw {

/// Asks for the rows of an image that are seen on paper of a size, px; `at` is the place of its corner.
/// put(x, y, rgb): pixels for the paper's row y, from x on.
template <typename Put>
void put_rows(const RgbRows& image, cv::Point at, cv::Size paper, Put put) {
  const cv::Rect place(at, cv::Size(image.size.width, image.size.height)), seen = place & cv::Rect({}, paper);
  if (seen.empty()) return;
  std::vector<std::uint8_t> row(3 * static_cast<std::size_t>(place.width));
  const auto pixels = std::span<const std::uint8_t>(row).subspan(3 * (seen.x - at.x), 3 * seen.width);
  for (int y = seen.y; y < seen.br().y; ++y) {
    image.write_row(y - at.y, row);
    put(seen.x, y, pixels);
  }
}

}  // namespace dic::draw
