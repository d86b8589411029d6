#include "synth/printed_target.hpp"

#include <algorithm>
#include <cmath>

namespace dic::synth {
namespace {

/// Distance of a position from the nearest multiple of `step`.
double from_line(double position, double step) {
  return std::abs(position - step * std::round(position / step));
}

bool has_squares(const Target& target) {
  return target.pattern == TargetPattern::checkerboard || target.pattern == TargetPattern::charuco;
}

}  // namespace

PrintedTarget::PrintedTarget(const Target& target) : target_(target) {
  const bool charuco = target.pattern == TargetPattern::charuco;
  if (charuco) print_ = calibration::print_charuco(target);
  const int columns = target.columns - (charuco ? 1 : 0), rows = target.rows - (charuco ? 1 : 0);
  const bool shifted = target.pattern == TargetPattern::acircles;
  for (int j = 0; j < rows; ++j)
    for (int i = 0; i < columns; ++i) {
      const int along = shifted ? 2 * i + j % 2 : i;
      points_.push_back({{along * target.square_mm, j * target.square_mm}, i, j});
    }
}

/// Rings are two dots inside three corners of the grid: the right angle at the lower left.
bool PrintedTarget::is_ring(double column, double row) const {
  if (target_.pattern != TargetPattern::rings) return false;
  const int right = target_.columns - 3, bottom = target_.rows - 3;
  return (column == 2 && (row == 2 || row == bottom)) || (column == right && row == bottom);
}

/// The dot whose cell contains the position. Dots do not reach beyond their cells.
PrintedTarget::Dot PrintedTarget::dot_near(double x, double y) const {
  const double s = target_.square_mm;
  if (target_.pattern == TargetPattern::acircles) {
    // Cells of shifted dots are squares that stand on a corner.
    const double p = std::round((x + y) / (2 * s)), q = std::round((x - y) / (2 * s));
    const double row = std::clamp(p - q, 0.0, target_.rows - 1.0), odd = std::fmod(row, 2);
    const double i = std::clamp((p + q - odd) / 2, 0.0, target_.columns - 1.0);
    return {(2 * std::floor(i) + odd) * s, row * s, 0.5 * s, 0};
  }
  const double i = std::clamp(std::round(x / s), 0.0, target_.columns - 1.0);
  const double j = std::clamp(std::round(y / s), 0.0, target_.rows - 1.0);
  return {i * s, j * s, 0.25 * s, is_ring(i, j) ? 0.1 * s : 0};
}

bool PrintedTarget::board_ink(double x, double y) const {
  const double i = std::floor(x / target_.square_mm), j = std::floor(y / target_.square_mm);
  return i >= -1 && j >= -1 && i < target_.columns && j < target_.rows && static_cast<int>(i + j) % 2 == 0;
}

bool PrintedTarget::charuco_ink(double x, double y) const {
  const double s = target_.square_mm, column = std::floor(x / s) + 1, row = std::floor(y / s) + 1;
  if (column < 0 || row < 0 || column >= target_.columns || row >= target_.rows) return false;
  const auto square = static_cast<std::size_t>(row) * target_.columns + static_cast<std::size_t>(column);
  if (print_.black[square]) return true;
  const double field = target_.marker_mm / print_.marker_fields, margin = (s - target_.marker_mm) / 2;
  const double i = std::floor((x - (column - 1) * s - margin) / field);
  const double j = std::floor((y - (row - 1) * s - margin) / field);
  const int n = print_.marker_fields;
  if (i < 0 || j < 0 || i >= n || j >= n) return false;
  return print_.fields[(square * n + static_cast<std::size_t>(j)) * n + static_cast<std::size_t>(i)] != 0;
}

bool PrintedTarget::ink(double x, double y) const {
  if (target_.pattern == TargetPattern::checkerboard) return board_ink(x, y);
  if (target_.pattern == TargetPattern::charuco) return charuco_ink(x, y);
  const Dot dot = dot_near(x, y);
  const double r = std::hypot(x - dot.x, y - dot.y);
  return r < dot.radius && r >= dot.hole;
}

bool PrintedTarget::edge_near(double x, double y, double reach) const {
  const double s = target_.square_mm;
  if (has_squares(target_)) {
    if (from_line(x, s) < reach || from_line(y, s) < reach) return true;
    if (target_.pattern == TargetPattern::checkerboard) return false;
    const double field = target_.marker_mm / print_.marker_fields, margin = (s - target_.marker_mm) / 2;
    const auto in_square = [&](double position) { return position - s * std::floor(position / s) - margin; };
    return from_line(in_square(x), field) < reach || from_line(in_square(y), field) < reach;
  }
  if (reach > s / 8) return true;  // dots of other cells may be near
  const Dot dot = dot_near(x, y);
  const double r = std::hypot(x - dot.x, y - dot.y);
  return std::abs(r - dot.radius) < reach || (dot.hole > 0 && std::abs(r - dot.hole) < reach);
}

}  // namespace dic::synth
