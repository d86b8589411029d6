#pragma once

#include <dic/shared/subset_window.hpp>
#include <vector>

#include "refine/image.hpp"
#include "refine/subset_patch.hpp"

namespace dic::refine {

/// Weights of the pixels of a subset, by their position in it; initially 0.
class WeightTable {
 public:
  explicit WeightTable(int subset)
      : radius_(subset / 2),
        stride_(subset + PaddedImage::kTail),
        values_(static_cast<std::size_t>(stride_) * subset) {}

  /// The weight of the pixel at (i, j) from the centre; |i| and |j| are at most the radius.
  float& at(int i, int j) { return values_[(j + radius_) * stride_ + i + radius_]; }
  PixelWeights view() const { return {values_.data() + radius_ * (stride_ + 1), stride_}; }

 private:
  std::ptrdiff_t radius_, stride_;
  std::vector<float> values_;
};

/// The window weights of a subset to the power of 1 or 2.
inline WeightTable window_table(SubsetWeights weights, int subset, int power) {
  WeightTable out(subset);
  for (int j = -subset / 2; j <= subset / 2; ++j)
    for (int i = -subset / 2; i <= subset / 2; ++i) {
      const double weight =
          window_weight<double>(weights, i, subset) * window_weight<double>(weights, j, subset);
      out.at(i, j) = static_cast<float>(power == 2 ? weight * weight : weight);
    }
  return out;
}

}  // namespace dic::refine
