#include "draw/moved_grid.hpp"

#include <cmath>
#include <map>

namespace dic::draw {
namespace {

std::span<const double> values(const NodeValues<double>& nodes) { return {nodes.data(), nodes.size()}; }

}  // namespace

MovedGrid::MovedGrid(const Grid& grid, std::span<const double> u, std::span<const double> v)
    : grid_(&grid), position_(u.size()), measured_(u.size()) {
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::size_t k = node(i, j);
      measured_[k] = grid.inside[k] && std::isfinite(u[k]) && std::isfinite(v[k]);
      position_[k] = {grid.x(i) + u[k], grid.y(j) + v[k]};
    }
}

MovedGrid::MovedGrid(const Field& field)
    : MovedGrid(field.grid(), values(field.image_u.empty() ? field.u : field.image_u),
                values(field.image_v.empty() ? field.v : field.image_v)) {}

cv::Point2d MovedGrid::pitch(int i, int j, int di, int dj) const {
  const bool before = is_measured(i - di, j - dj), after = is_measured(i + di, j + dj);
  if (!before && !after) return {double(di) * grid_->step, double(dj) * grid_->step};
  const cv::Point2d from = before ? position(i - di, j - dj) : position(i, j);
  const cv::Point2d to = after ? position(i + di, j + dj) : position(i, j);
  return (to - from) * (before && after ? 0.5 : 1.0);
}

cv::Point2d MovedGrid::corner(int i, int j) const {
  cv::Point2d sum(0, 0);
  int n = 0;
  for (int b = j - 1; b <= j; ++b)
    for (int a = i - 1; a <= i; ++a) {
      if (!is_measured(a, b)) continue;
      sum += position(a, b) + pitch(a, b, 1, 0) * (i - a - 0.5) + pitch(a, b, 0, 1) * (j - b - 0.5);
      ++n;
    }
  return sum / n;
}

/// Fills gaps ring by ring: a node that was not measured moves like the mean of its neighbours.
MovedGrid MovedGrid::without_gaps() const {
  MovedGrid filled = *this;
  std::vector<cv::Point> ring;
  const auto reference = [&](int i, int j) { return cv::Point2d(grid_->x(i), grid_->y(j)); };
  do {
    ring.clear();
    for (int j = 0; j < ny(); ++j)
      for (int i = 0; i < nx(); ++i) {
        if (!grid_->inside[node(i, j)] || filled.is_measured(i, j)) continue;
        cv::Point2d sum(0, 0);
        int n = 0;
        for (const auto& [di, dj] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}})
          if (filled.is_measured(i + di, j + dj))
            sum += filled.position(i + di, j + dj) - reference(i + di, j + dj), ++n;
        if (n == 0) continue;
        filled.position_[node(i, j)] = reference(i, j) + sum / n;
        ring.emplace_back(i, j);
      }
    for (const cv::Point& p : ring) filled.measured_[node(p.x, p.y)] = 1;
  } while (!ring.empty());
  return filled;
}

std::vector<std::vector<cv::Point2d>> MovedGrid::outlines() const {
  const MovedGrid filled = without_gaps();
  // The sides of cells at the border, from corner to corner with the inside to the right.
  std::multimap<std::pair<int, int>, std::pair<int, int>> sides;
  for (int j = 0; j < ny(); ++j)
    for (int i = 0; i < nx(); ++i) {
      if (!filled.is_measured(i, j)) continue;
      if (!filled.is_measured(i, j - 1)) sides.insert({{i, j}, {i + 1, j}});
      if (!filled.is_measured(i + 1, j)) sides.insert({{i + 1, j}, {i + 1, j + 1}});
      if (!filled.is_measured(i, j + 1)) sides.insert({{i + 1, j + 1}, {i, j + 1}});
      if (!filled.is_measured(i - 1, j)) sides.insert({{i, j + 1}, {i, j}});
    }
  std::vector<std::vector<cv::Point2d>> lines;
  while (!sides.empty()) {
    std::vector<cv::Point2d>& line = lines.emplace_back();
    for (auto side = sides.begin(); side != sides.end();) {
      line.push_back(filled.corner(side->first.first, side->first.second));
      const auto next = side->second;
      sides.erase(side);
      side = sides.find(next);
    }
    line.push_back(line.front());
  }
  return lines;
}

}  // namespace dic::draw
