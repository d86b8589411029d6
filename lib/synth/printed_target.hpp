#pragma once

#include <dic/calibrate.hpp>
#include <vector>

#include "calibrate/charuco_print.hpp"
#include "synth/motion.hpp"

namespace dic::synth {

/// The ink on the plane of a target; its first point is the origin.
class PrintedTarget {
 public:
  explicit PrintedTarget(const Target& target);

  struct Point : Position {
    int column = 0, row = 0;
  };
  /// The corners or centres, mm, row by row.
  const std::vector<Point>& points() const { return points_; }
  bool ink(double x, double y) const;
  /// False if ink(x, y) is the same everywhere within `reach` mm; may be true without need.
  bool edge_near(double x, double y, double reach) const;

 private:
  struct Dot {
    double x = 0, y = 0, radius = 0, hole = 0;
  };
  Dot dot_near(double x, double y) const;
  bool is_ring(double column, double row) const;
  bool board_ink(double x, double y) const;
  bool charuco_ink(double x, double y) const;

  Target target_;
  std::vector<Point> points_;
  calibration::CharucoPrint print_;
};

}  // namespace dic::synth
