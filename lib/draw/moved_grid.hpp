#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <opencv2/core/types.hpp>
#include <span>
#include <vector>

namespace dic::draw {

/// The nodes of a grid where they are in the current image. Every measured node is a cell that reaches
/// half-way to its neighbours; between nodes (i-1, j-1) and (i, j) lies the corner (i, j).
class MovedGrid {
 public:
  /// u, v: displacement in the image, px, [ny x nx]; not finite where nothing was measured. The grid has to
  /// live as long.
  MovedGrid(const Grid& grid, std::span<const double> u, std::span<const double> v);
  explicit MovedGrid(const Field& field);

  int nx() const { return grid_->nx; }
  int ny() const { return grid_->ny; }
  const Grid& grid() const { return *grid_; }
  std::size_t node(int i, int j) const { return static_cast<std::size_t>(j) * grid_->nx + i; }

  bool is_measured(int i, int j) const { return has(i, j) && measured_[node(i, j)]; }
  /// Of a measured node, px of the image.
  cv::Point2d position(int i, int j) const { return position_[node(i, j)]; }
  /// What its measured neighbours say, px; some node at it has to be measured.
  cv::Point2d corner(int i, int j) const;
  /// Closed lines around the nodes inside the ROI. Where nothing was measured the ROI moves with the nearest
  /// measured nodes.
  std::vector<std::vector<cv::Point2d>> outlines() const;

 private:
  bool has(int i, int j) const { return i >= 0 && j >= 0 && i < grid_->nx && j < grid_->ny; }
  /// From a node to its next one along i (di = 1) or j (dj = 1), px: a mean over both sides.
  cv::Point2d pitch(int i, int j, int di, int dj) const;
  MovedGrid without_gaps() const;

  const Grid* grid_;
  std::vector<cv::Point2d> position_;
  std::vector<std::uint8_t> measured_;
};

}  // namespace dic::draw
