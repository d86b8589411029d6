#include <opencv2/objdetect/charuco_detector.hpp>

#include "calibrate/charuco.hpp"

namespace dic::calibration {
namespace {

cv::aruco::CharucoBoard layout_of(const CharucoBoard& board) {
  return {board.squares, static_cast<float>(board.square), static_cast<float>(board.marker),
          cv::aruco::getPredefinedDictionary(board.dictionary)};
}

}  // namespace

CharucoCorners find_charuco(const cv::Mat& grey, const CharucoBoard& board) {
  CharucoCorners found;
  cv::aruco::CharucoDetector(layout_of(board)).detectBoard(grey, found.places, found.numbers);
  return found;
}

cv::Mat draw_charuco(const CharucoBoard& board, int square_px) {
  cv::Mat drawn;
  layout_of(board).generateImage(board.squares * square_px, drawn, 0, 1);
  return drawn;
}

int marker_fields(int dictionary) { return cv::aruco::getPredefinedDictionary(dictionary).markerSize + 2; }

}  // namespace dic::calibration
