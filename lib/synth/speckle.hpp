#pragma once

#include <cstdint>
#include <dic/synth.hpp>
#include <vector>

namespace dic::synth {

/// The endless pattern of material positions: a square grid of cells, each with one blob at a random place,
/// randomly dark or bright. The blobs of a lattice are dark and in the middle of their cells.
struct SpeckleSettings {
  double sigma = 1;  ///< px
  double cell = 1;   ///< px, side of a cell
  std::uint64_t seed = 0;
  Texture texture = Texture::blobs;
  double spread = 1;        ///< sizes from sigma / spread to sigma * spread, uniform in the logarithm
  std::int64_t repeat = 0;  ///< cells after which the pattern repeats itself along both axes; 0 = never
  double blur = 0;          ///< px: a blob of sigma s becomes one of sqrt(s^2 + blur^2), of the same sum
};

struct Blob {
  double x = 0, y = 0;  ///< px
  double sign = 1;      ///< -1 or 1
  double sigma = 1;     ///< px
};

/// The blob of cell (column, row), which covers [column, column + 1) * cell by [row, row + 1) * cell.
Blob blob_of(const SpeckleSettings& settings, std::int64_t column, std::int64_t row);

struct Box {
  double x_min = 0, x_max = 0, y_min = 0, y_max = 0;  ///< px
};

/// The blobs that affect the inside of a box.
class Speckle {
 public:
  Speckle(const SpeckleSettings& settings, const Box& box);
  /// Value of the pattern at (x, y), which must be inside the box. Blobs, lattice: sum of sign * exp(-r^2 /
  /// (2 sigma^2)) over the blobs within 5.5 sigma, which leaves out less than 1e-7 of the grey range. Dots:
  /// -1 on a dot, 0 elsewhere. Gradient: x.
  double at(double x, double y) const;
  /// The dots with an edge within `reach` of (x, y); none if one dot covers the whole circle.
  std::vector<Blob> edges_near(double x, double y, double reach) const;
  static bool covers(const Blob& dot, double x, double y);

 private:
  std::int64_t cell_of(double position) const;
  /// Calls body(blob, r^2) for the blobs within the largest radius.
  template <typename Body>
  void each_near(double x, double y, double radius, const Body& body) const;

  SpeckleSettings settings_;
  double radius_;
  std::int64_t first_column_, first_row_, columns_;
  std::vector<Blob> blobs_;
};

}  // namespace dic::synth
