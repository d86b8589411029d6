#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <vector>

/// The same material in two images, at some measured points.
namespace dic::track {

/// A square of grey values; sides are odd.
class Patch {
 public:
  explicit Patch(int radius) : radius_(radius), values_(static_cast<std::size_t>(side()) * side()) {}
  int radius() const { return radius_; }
  int side() const { return 2 * radius_ + 1; }
  double& at(int dx, int dy) { return values_[(dy + radius_) * side() + dx + radius_]; }
  double at(int dx, int dy) const { return values_[(dy + radius_) * side() + dx + radius_]; }

 private:
  int radius_;
  std::vector<double> values_;
};

/// The same material in both images, in the coordinates of the reference.
struct Pair {
  std::int64_t node;  ///< in the middle
  Patch reference, current;
  double stretch = 1;     ///< square root of the ratio of areas, current over reference
  double noise_gain = 0;  ///< variance of white noise after the interpolation of `current`
};

/// How pairs are sampled: the radius of the patches, px, and the number of pairs, at most.
struct PairSampling {
  int radius, most;
};
/// Pairs of patches spread over a measured field, where a point and its four neighbours are ok and both
/// patches lie in the images. The current image is interpolated at the positions that the field gives.
std::vector<Pair> sample_pairs(ImageView reference, ImageView current, const Field& field,
                               const PairSampling& how);

}  // namespace dic::track
