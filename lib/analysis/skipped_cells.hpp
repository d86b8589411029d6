#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <vector>

#include "core/parallel.hpp"

namespace dic::analysis {

/// Parts of a frame that a camera or a codec has not updated: they show an older frame, pixel by pixel. The
/// noise makes that impossible by chance. Two of each eight rows are looked at.
class SkippedCells {
 public:
  static constexpr int kSide = 8;                  ///< px, side of a cell
  static constexpr std::uint8_t kReference = 255;  ///< age of cells that show the reference

  SkippedCells() = default;
  /// The cells of a frame. rows: see sampled_rows(), of the frame, of the frame before and of the reference;
  /// before: the cells of the frame before.
  SkippedCells(ImageView rows, ImageView rows_before, ImageView rows_of_reference, const SkippedCells& before,
               core::ThreadPool& pool);

  /// True if no cell was skipped.
  bool empty() const { return !any_; }

  /// True if the cell with this pixel of a sampled row was skipped.
  bool contains(int x, int sampled_row) const {
    const std::size_t k = static_cast<std::size_t>(sampled_row / 2) * nx_ + x / kSide;
    return any_ && x / kSide < nx_ && age_[k] != 0;
  }

  /// Cells in a square of an image.
  struct Sum {
    double all = 0, skipped = 0;
    double of_reference = 0;  ///< cells that show the reference
    double age = 0;           ///< sum of the ages, in frames, of the other skipped cells
  };
  /// Sums over the cells around (x, y), up to `reach` px along each axis.
  Sum around(double x, double y, int reach) const;

 private:
  int nx_ = 0, ny_ = 0;
  bool any_ = false;
  std::vector<std::uint8_t> age_;  ///< [ny x nx]: frames since the last update; 0: updated
};

/// The middle two of each eight rows of an image.
Image sampled_rows(ImageView image, core::ThreadPool& pool);

}  // namespace dic::analysis
