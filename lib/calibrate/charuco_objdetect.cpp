#include <opencv2/objdetect/charuco_detector.hpp>

#include "calibrate/charuco.hpp"

namespace dic::calibration {

CharucoCorners find_charuco(const cv::Mat& grey, const CharucoBoard& board) {
  const cv::aruco::CharucoBoard layout(board.squares, static_cast<float>(board.square),
                                       static_cast<float>(board.marker),
                                       cv::aruco::getPredefinedDictionary(board.dictionary));
  CharucoCorners found;
  cv::aruco::CharucoDetector(layout).detectBoard(grey, found.places, found.numbers);
  return found;
}

}  // namespace dic::calibration
