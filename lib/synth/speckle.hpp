#pragma once

#include <cstdint>
#include <vector>

namespace dic {

/// The endless pattern of material positions: a square grid of cells, in each one blob at a random place,
/// dark or bright at random.
struct SpeckleSettings {
  double sigma = 1;  ///< px
  double cell = 1;   ///< px, side of a cell
  std::uint64_t seed = 0;
};

struct Blob {
  double x = 0, y = 0;  ///< px
  double sign = 1;      ///< -1 or 1
};

/// The blob of cell (column, row), which covers [column, column + 1) * cell and so on.
Blob blob_of(const SpeckleSettings& settings, std::int64_t column, std::int64_t row);

struct Box {
  double x_min = 0, x_max = 0, y_min = 0, y_max = 0;  ///< px
};

/// The blobs that matter inside a box.
class Speckle {
 public:
  Speckle(const SpeckleSettings& settings, const Box& box);
  /// sum of sign * exp(-r^2 / (2 sigma^2)) over the blobs within 5.5 sigma, which leaves out less than 1e-7
  /// of the grey range. (x, y) must be inside the box.
  double at(double x, double y) const;

 private:
  std::int64_t cell_of(double position) const;

  SpeckleSettings settings_;
  double radius_;
  std::int64_t first_column_, first_row_, columns_;
  std::vector<Blob> blobs_;
};

}  // namespace dic
