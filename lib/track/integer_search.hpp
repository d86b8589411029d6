#pragma once

#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <span>
#include <vector>

#include "core/mask_counts.hpp"

namespace dic {

/// Where a subset was found: displacement with the sub-pixel offset of the correlation peak, px.
struct FoundShift {
  double u = 0, v = 0;
  float score = -1;        ///< zncc at the integer peak; -1 where nothing could be compared
  bool at_border = false;  ///< the peak lies on the edge of the searched rectangle
};

/// A displacement to search around, px.
struct Prediction {
  int u = 0, v = 0;
};

/// ZNCC search of the subsets of one reference: whole-pixel shifts plus the peak's fit.
///
/// Subsets cut by the picture's border or by a straight ROI edge along it use the rectangle
/// inside; others cut by the ROI are masked. Subsets of one shape go into one request of the `correlate`
/// room.
class IntegerSearch {
 public:
  /// x, y: subset centres inside the picture. The views must outlive the searches. roi: u8, may be empty.
  IntegerSearch(ImageView reference, std::span<const int> x, std::span<const int> y, int radius,
                ImageView roi);

  /// Share of the subset's pixels inside picture and ROI, 0..1.
  double coverage(std::int64_t point) const;

  /// Searches the points `which` within +-range px of their predictions (same order), results in that order.
  std::vector<FoundShift> around(Correlator& correlator, ImageView current,
                                 std::span<const std::int64_t> which, std::span<const Prediction> predictions,
                                 int range) const;
  /// Searches the whole current picture for every point.
  std::vector<FoundShift> everywhere(Correlator& correlator, ImageView current) const;

 private:
  struct Shape {
    int left = 0, top = 0, width = 0, height = 0;  // relative to the centre
    bool masked = false;
    std::int64_t area() const { return std::int64_t{width} * height; }
    bool operator==(const Shape&) const = default;
  };
  struct Centre {
    int x, y, shape;
    float coverage;
  };

  Shape shape_of(int x, int y, int radius, const MaskCounts* roi, float& coverage) const;
  static Shape shrunk(Shape shape, int x, int y, const MaskCounts& roi);
  int index_of(const Shape& shape);
  MatrixPosition reference_position(std::int64_t point) const;
  CorrelateRequest request(const Shape& shape, std::span<const MatrixPosition> positions,
                           std::span<const ImageView> current) const;

  ImageView reference_, roi_;
  std::vector<Shape> shapes_;
  std::vector<Centre> points_;
};

}  // namespace dic
