#pragma once

#include <cstdint>
#include <dic/image_io.hpp>
#include <opencv2/core/types.hpp>
#include <span>
#include <vector>

namespace dic::draw {

/// Requests the rows of an image that are visible on paper of the given size, px. at: position of the image's
/// corner on the paper. put(x, y, rgb): receives pixels for row y of the paper from column x on.
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
