#pragma once

#include <dic/refine.hpp>
#include <memory>
#include <span>
#include <vector>

namespace dic::refine {

/// Predicted sigma of subsets of any side in one image. Its gradients are computed once, and nothing is
/// measured.
class SubsetSigmas {
 public:
  /// roi: 0 or 255, of the image's size; or empty.
  SubsetSigmas(const RefineOptions& options, int threads, ImageView reference, ImageView roi);
  ~SubsetSigmas();

  /// The larger of sigma_u and sigma_v at every point (x, y), px, for noise of 1 grey level that leads to
  /// sigma by the matrix of a subset alone; infinite where a subset cannot be measured.
  std::vector<double> of(int subset, std::span<const int> x, std::span<const int> y);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic::refine
