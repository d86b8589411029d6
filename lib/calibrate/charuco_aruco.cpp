#include <opencv2/aruco/charuco.hpp>

#include "calibrate/charuco.hpp"

namespace dic::calibration {

CharucoCorners find_charuco(const cv::Mat& grey, const CharucoBoard& board) {
  const auto dictionary = cv::aruco::getPredefinedDictionary(
      static_cast<cv::aruco::PREDEFINED_DICTIONARY_NAME>(board.dictionary));
  const auto layout = cv::aruco::CharucoBoard::create(board.squares.width, board.squares.height,
                                                      static_cast<float>(board.square),
                                                      static_cast<float>(board.marker), dictionary);
  std::vector<std::vector<cv::Point2f>> markers;
  std::vector<int> ids;
  cv::aruco::detectMarkers(grey, dictionary, markers, ids);
  CharucoCorners found;
  if (!ids.empty())
    cv::aruco::interpolateCornersCharuco(markers, ids, grey, layout, found.places, found.numbers);
  return found;
}

}  // namespace dic::calibration
