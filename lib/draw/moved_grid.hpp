#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <opencv2/core/types.hpp>
#include <span>
#include <vector>

namespace dic::draw {

/// The nodes of a grid at their positions in the current image. Every measured node is a cell that reaches
/// half-way to its neighbours; the corner (i, j) lies between the nodes (i-1, j-1) and (i, j).
class MovedGrid {
 public:
  /// u, v: displacement in the image, px, [ny x nx]; not finite for nodes that were not measured. The grid
  /// must outlive this object.
  MovedGrid(const Grid& grid, std::span<const double> u, std::span<const double> v);
  explicit MovedGrid(const Field& field);

  int nx() const { return grid_->nx; }
  int ny() const { return grid_->ny; }
  const Grid& grid() const { return *grid_; }
  std::size_t node(int i, int j) const { return static_cast<std::size_t>(j) * grid_->nx + i; }

  bool is_measured(int i, int j) const { return has(i, j) && measured_[node(i, j)]; }
  /// Position of a measured node, px of the image.
  cv::Point2d position(int i, int j) const { return position_[node(i, j)]; }
  /// Position of a corner by its measured nodes, of which there must be at least one, px of the image.
  cv::Point2d corner(int i, int j) const;
  /// Closed lines around the nodes inside the ROI, px of the image. Parts of the ROI without measured nodes
  /// move with the nearest measured ones.
  std::vector<std::vector<cv::Point2d>> outlines() const;

 private:
  bool has(int i, int j) const { return i >= 0 && j >= 0 && i < grid_->nx && j < grid_->ny; }
  /// The vector from a node to the next one along i (di = 1) or j (dj = 1), px; a mean over both sides.
  cv::Point2d pitch(int i, int j, int di, int dj) const;
  MovedGrid without_gaps() const;

  const Grid* grid_;
  std::vector<cv::Point2d> position_;
  std::vector<std::uint8_t> measured_;
};

}  // namespace dic::draw
