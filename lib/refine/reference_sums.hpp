#pragma once

#include <cstddef>
#include <vector>

#include "refine/subset_patch.hpp"

namespace dic {

/// Sums over a reference subset; i, j are px from its centre, grey values f relative to `mean`; monomials as
/// icgn::monomial_index orders them. All sums are weighted.
struct ReferenceSubsetSums {
  double count = 0, mean = 0;     ///< sum of the weights; mean grey value, or the given one
  double grey = 0;                ///< sum f: 0 but for rounding, relative to the mean
  double grey_grey = 0;           ///< sum f^2
  double dx[6] = {}, dy[6] = {};  ///< sum dx i^a j^b, a + b <= order
  double grey_dx[6] = {}, grey_dy[6] = {};
  double dx_dx[15] = {}, dx_dy[15] = {}, dy_dy[15] = {};  ///< a + b <= 2 order
};

/// Columns of a subset, inclusive, and that of its centre, as the patch of ColumnSums counts them.
struct SubsetColumns {
  int left, right, centre;
};

/// Sums down the columns of a patch, from which the sums over all subsets in its rows follow: those of
/// neighbouring points have most columns in common. Vectorized over columns with run-time dispatch.
class ColumnSums {
 public:
  /// Replaces them. The patch may be as wide as its image. order: of the shape function.
  void sum(const ReferencePatch& patch, int order);

  /// Over a subset with all rows of the patch, relative to its mean.
  ReferenceSubsetSums over(const SubsetColumns& columns) const;
  /// Relative to a given grey value.
  ReferenceSubsetSums over(const SubsetColumns& columns, float mean) const;

 private:
  void add_up(const SubsetColumns& columns, const float* mean, ReferenceSubsetSums& out) const;

  int order_ = 0, first_ = 0;  ///< first_: column of the patch
  std::size_t stride_ = 0;     ///< floats from one kind of sum to the next
  std::vector<float> sums_;
};

/// Sums over one subset that no other one shares columns with.
ReferenceSubsetSums reference_sums(const ReferencePatch& patch, int order);
/// Relative to a given grey value.
ReferenceSubsetSums reference_sums_about(float mean, const ReferencePatch& patch, int order);

}  // namespace dic
