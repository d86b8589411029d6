#include "draw/contour_lines.hpp"

#include <array>
#include <cmath>

namespace dic::draw {
namespace {

struct Corner {
  cv::Point2d position;
  double height = 0;  ///< value minus the level
};

/// Adds the piece of the level's line inside a triangle, if there is one.
void add_piece(std::vector<std::pair<cv::Point2d, cv::Point2d>>& pieces,
               const std::array<Corner, 3>& corners) {
  std::vector<cv::Point2d> ends;
  for (int k = 0; k < 3; ++k) {
    const Corner &a = corners[k], &b = corners[(k + 1) % 3];
    if ((a.height < 0) == (b.height < 0)) continue;
    ends.push_back(a.position + (b.position - a.position) * (a.height / (a.height - b.height)));
  }
  if (ends.size() == 2) pieces.emplace_back(ends[0], ends[1]);
}

}  // namespace

/// Divides each square into four triangles around its middle: no case is ambiguous, and lines stay smooth.
std::vector<std::pair<cv::Point2d, cv::Point2d>> contour_lines(const MovedGrid& grid,
                                                               std::span<const float> values, double level) {
  std::vector<std::pair<cv::Point2d, cv::Point2d>> pieces;
  for (int j = 0; j + 1 < grid.ny(); ++j)
    for (int i = 0; i + 1 < grid.nx(); ++i) {
      std::array<Corner, 4> square;
      Corner middle;
      bool complete = true;
      for (int k = 0; k < 4; ++k) {
        const int a = i + (k == 1 || k == 2), b = j + k / 2;
        complete = complete && grid.is_measured(a, b) && std::isfinite(values[grid.node(a, b)]);
        if (!complete) break;
        square[k] = {grid.position(a, b), values[grid.node(a, b)] - level};
        middle.position += square[k].position / 4;
        middle.height += square[k].height / 4;
      }
      if (!complete) continue;
      for (int k = 0; k < 4; ++k) add_piece(pieces, {square[k], square[(k + 1) % 4], middle});
    }
  return pieces;
}

}  // namespace dic::draw
