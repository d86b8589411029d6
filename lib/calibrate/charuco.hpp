#pragma once

#include <dic/calibrate.hpp>
#include <opencv2/core.hpp>
#include <vector>

namespace dic::calibration {

struct CharucoBoard {
  cv::Size squares;
  double square = 1, marker = 0.5;  ///< mm
  int dictionary = 0;               ///< OpenCV's number of a predefined dictionary
};

/// The board of a charuco target.
CharucoBoard board_of(const Target& target);

/// The corners of a board that are visible in an image.
struct CharucoCorners {
  std::vector<cv::Point2f> places;
  std::vector<int> numbers;  ///< numbers of the corners, row by row with (squares.width - 1) in a row
};

/// Finds the corners of a board. A build defines this and the functions below in exactly one of two files,
/// because OpenCV 4.7 moved these boards from its module aruco to objdetect.
CharucoCorners find_charuco(const cv::Mat& grey, const CharucoBoard& board);

/// The board as it is printed, 8 bit, with this many pixels per square and no margin.
cv::Mat draw_charuco(const CharucoBoard& board, int square_px);
/// Side of a marker in its own black and white fields, including its black border of one field.
int marker_fields(int dictionary);

}  // namespace dic::calibration
