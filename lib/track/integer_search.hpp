#pragma once

#include <cmath>
#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "track/subset_shapes.hpp"

namespace dic::track {

/// Displacement at which a subset was found, with the sub-pixel offset of the correlation peak, px.
struct FoundShift {
  double u = 0, v = 0;
  float score = -1;        ///< zncc at the integer peak
  bool at_border = false;  ///< the peak lies on the edge of the searched rectangle
  bool found = false;      ///< false if no pixel could be compared
};
/// Converts a peak to a displacement. (u, v): displacement of the shift (0, 0), px.
FoundShift found_shift(const Peak& peak, int u, int v);

/// A displacement to search around, px.
struct Prediction {
  int u = 0, v = 0;
};
inline Prediction rounded(double u, double v) {
  return {static_cast<int>(std::lround(u)), static_cast<int>(std::lround(v))};
}

/// ZNCC search of the subsets of one reference: whole-pixel shifts plus the peak's fit. Subsets of one shape
/// go into one request of the `correlate` room, as many as keep their peaks in the caches.
class IntegerSearch {
 public:
  /// roi: u8, may be empty. Images and shapes must outlive the object.
  IntegerSearch(ImageView reference, ImageView roi, const SubsetShapes& shapes, core::ThreadPool& pool)
      : reference_(reference), roi_(roi), shapes_(shapes), pool_(pool) {}

  /// Searches the points `which` within +-range px of their predictions (same order), results in that order.
  std::vector<FoundShift> around(Correlator& correlator, ImageView current,
                                 std::span<const std::int64_t> which, std::span<const Prediction> predictions,
                                 int range) const;
  /// Searches the whole current image for the points `which`, results in that order.
  std::vector<FoundShift> everywhere(Correlator& correlator, ImageView current,
                                     std::span<const std::int64_t> which) const;

 private:
  CorrelateRequest request(const SubsetShape& shape, std::span<const PatchPosition> positions,
                           std::span<const ImageView> current) const;

  ImageView reference_, roi_;
  const SubsetShapes& shapes_;
  core::ThreadPool& pool_;
};

}  // namespace dic::track
