#pragma once

#include <opencv2/core.hpp>
#include <vector>

namespace dic::calibration {

/// A dot of a grid, counted from the ring in its corner.
struct GridDot {
  int column = 0, row = 0;
  cv::Point2d centre;  ///< px
  double area = 0;     ///< px^2, with the hole of a ring
};

/// Finds the dots of a grid in which three are rings: one in the corner of a right angle, the others along
/// the two directions of the grid; columns run towards the one that is more dots away. Dots may be dark or
/// bright, and may be hidden as long as the others are connected. Dots at the border of the image are left
/// out. The result is empty if no three rings stand on one grid.
std::vector<GridDot> find_ring_grid(const cv::Mat& grey);

}  // namespace dic::calibration
