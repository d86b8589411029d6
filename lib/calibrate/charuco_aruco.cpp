#include <opencv2/aruco/charuco.hpp>

#include "calibrate/charuco.hpp"

namespace dic::calibration {
namespace {

cv::Ptr<cv::aruco::Dictionary> dictionary_of(int number) {
  return cv::aruco::getPredefinedDictionary(static_cast<cv::aruco::PREDEFINED_DICTIONARY_NAME>(number));
}

cv::Ptr<cv::aruco::CharucoBoard> aruco_layout_of(const CharucoBoard& board) {
  return cv::aruco::CharucoBoard::create(board.squares.width, board.squares.height,
                                         static_cast<float>(board.square), static_cast<float>(board.marker),
                                         dictionary_of(board.dictionary));
}

}  // namespace

CharucoCorners find_charuco(const cv::Mat& grey, const CharucoBoard& board) {
  const auto dictionary = dictionary_of(board.dictionary);
  const auto layout = aruco_layout_of(board);
  std::vector<std::vector<cv::Point2f>> markers;
  std::vector<int> ids;
  cv::aruco::detectMarkers(grey, dictionary, markers, ids);
  CharucoCorners found;
  if (!ids.empty())
    cv::aruco::interpolateCornersCharuco(markers, ids, grey, layout, found.places, found.numbers);
  return found;
}

cv::Mat draw_charuco(const CharucoBoard& board, int square_px) {
  cv::Mat drawn;
  aruco_layout_of(board)->draw(board.squares * square_px, drawn, 0, 1);
  return drawn;
}

int marker_fields(int dictionary) { return dictionary_of(dictionary)->markerSize + 2; }

}  // namespace dic::calibration
