#pragma once

#include <dic/refine.hpp>
#include <memory>
#include <span>
#include <vector>

#include "core/parallel.hpp"

namespace dic::refine {

/// Predicts sigma for subsets of any size in one image. Computes the gradients once, and measures nothing.
class SubsetSigmas {
 public:
  /// roi: 0 or 255, as large as the reference; or empty. pool: lives longer.
  SubsetSigmas(const RefineOptions& options, core::ThreadPool& pool, ImageView reference, ImageView roi);
  ~SubsetSigmas();

  /// The larger of sigma_u and sigma_v at every point (x, y), px, for noise of 1 grey level, by the matrix of
  /// the subset alone; infinite if the subset cannot be measured.
  std::vector<double> of(int subset, std::span<const int> x, std::span<const int> y);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic::refine
