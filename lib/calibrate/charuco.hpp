#pragma once

#include <opencv2/core.hpp>
#include <vector>

namespace dic::calibration {

struct CharucoBoard {
  cv::Size squares;
  double square = 1, marker = 0.5;  ///< mm
  int dictionary = 0;               ///< OpenCV's number of a predefined dictionary
};

/// The corners of a board that are visible in an image.
struct CharucoCorners {
  std::vector<cv::Point2f> places;
  std::vector<int> numbers;  ///< numbers of the corners, row by row with (squares.width - 1) in a row
};

/// Finds the corners of a board. A build defines it in exactly one of two files, because OpenCV 4.7 moved
/// these boards from its module aruco to objdetect.
CharucoCorners find_charuco(const cv::Mat& grey, const CharucoBoard& board);

}  // namespace dic::calibration
