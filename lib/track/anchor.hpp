#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <dic/refine.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "track/coarse_search.hpp"
#include "track/integer_search.hpp"

namespace dic {

/// Where a material point of the original reference lies in the picture that now serves as reference.
struct MaterialPoint {
  double u = 0, v = 0;                   ///< displacement from the original reference to this one, px
  double dx = 0, dy = 0;                 ///< from the subset's (whole-pixel) centre to the point, px
  float variance_u = 0, variance_v = 0;  ///< of u and v, px^2
  Status status = Status::ok;            ///< why it could not be followed this far
};

/// The reference that current frames are compared with: the first picture, or a later one that took its
/// place.
class Anchor {
 public:
  /// roi: 0 or 255, the picture's size; empty = all. x, y: nodes in the original reference; material: how far
  /// they have moved since (empty = not at all).
  Anchor(ImageView picture, Image roi, const std::vector<int>& x, const std::vector<int>& y,
         std::vector<MaterialPoint> material, const RefineOptions& options, int threads,
         const std::string& device);

  std::int64_t size() const { return static_cast<std::int64_t>(x.size()); }
  const CoarseSearch& coarse();
  bool trackable(std::int64_t i) const {
    return material[i].status == Status::ok && refiner.reference_status(i) == Status::ok;
  }
  Status reference_status(std::int64_t i) const {
    return material[i].status != Status::ok ? material[i].status : refiner.reference_status(i);
  }

  Image picture, roi;
  std::vector<MaterialPoint> material;
  std::vector<int> x, y;  ///< subset centres in `picture`
  Refiner refiner;
  std::unique_ptr<IntegerSearch> search;
  std::vector<RefinedPoint> last;  ///< results of the frame before against this anchor; empty at first

 private:
  std::optional<CoarseSearch> coarse_;
};

/// The ROI as it lies in the current picture: every cell of the grid is moved by its node's displacement.
Image moved_roi(const Image& roi, const Grid& grid, const Field& field);

}  // namespace dic
