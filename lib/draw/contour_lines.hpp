#pragma once

#include <opencv2/core/types.hpp>
#include <span>
#include <utility>
#include <vector>

#include "draw/moved_grid.hpp"

namespace dic::draw {

/// The contour lines of `level` in values [ny x nx], linear between nodes, as pieces from point to point, px
/// of the image. A square of four nodes has none if one of its nodes has no value.
std::vector<std::pair<cv::Point2d, cv::Point2d>> contour_lines(const MovedGrid& grid,
                                                               std::span<const float> values, double level);

}  // namespace dic::draw
