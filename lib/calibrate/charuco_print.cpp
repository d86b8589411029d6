#include "calibrate/charuco_print.hpp"

#include <cmath>

#include "calibrate/charuco.hpp"

namespace dic::calibration {

CharucoPrint print_charuco(const Target& target) {
  const CharucoBoard board = board_of(target);
  CharucoPrint print;
  print.marker_fields = marker_fields(board.dictionary);
  // OpenCV's drawing tells the layout; its pixels are read in the middle of fields, several pixels from every
  // edge.
  constexpr int kFieldPx = 8;
  const double part = board.marker / board.square;
  const int square = static_cast<int>(std::ceil(kFieldPx * print.marker_fields / part));
  const cv::Mat drawn = draw_charuco(board, square);
  const auto black_at = [&](int row, int column, double y, double x) {
    const int line = static_cast<int>((row + y) * square), place = static_cast<int>((column + x) * square);
    return static_cast<std::uint8_t>(drawn.at<std::uint8_t>(line, place) < 128);
  };
  for (int row = 0; row < target.rows; ++row)
    for (int column = 0; column < target.columns; ++column) {
      print.black.push_back(black_at(row, column, (1 - part) / 4, (1 - part) / 4));  // beside a marker
      for (int j = 0; j < print.marker_fields; ++j)
        for (int i = 0; i < print.marker_fields; ++i)
          print.fields.push_back(black_at(row, column, 0.5 + part * ((j + 0.5) / print.marker_fields - 0.5),
                                          0.5 + part * ((i + 0.5) / print.marker_fields - 0.5)));
    }
  return print;
}

}  // namespace dic::calibration
