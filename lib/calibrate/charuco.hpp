#pragma once

#include <opencv2/core.hpp>
#include <vector>

namespace dic::calibration {

struct CharucoBoard {
  cv::Size squares;
  double square = 1, marker = 0.5;  ///< mm
  int dictionary = 0;               ///< OpenCV's number of a predefined one
};

/// Corners of a board that an image shows.
struct CharucoCorners {
  std::vector<cv::Point2f> places;
  std::vector<int> numbers;  ///< row by row, (squares.width - 1) in a row
};

/// Defined by exactly one file: OpenCV moved these boards from its module aruco to objdetect in 4.7.
CharucoCorners find_charuco(const cv::Mat& grey, const CharucoBoard& board);

}  // namespace dic::calibration
