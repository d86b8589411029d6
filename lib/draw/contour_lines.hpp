#pragma once

#include <opencv2/core/types.hpp>
#include <span>
#include <utility>
#include <vector>

#include "draw/moved_grid.hpp"

namespace dic::draw {

/// Where the values [ny x nx] are `level`, linear between nodes: pieces of lines, px of the image. Squares of
/// four nodes of which one has no value have none.
std::vector<std::pair<cv::Point2d, cv::Point2d>> contour_lines(const MovedGrid& grid,
                                                               std::span<const float> values, double level);

}  // namespace dic::draw
