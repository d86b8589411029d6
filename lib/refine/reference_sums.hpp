#pragma once

#include <cstddef>
#include <vector>

#include "refine/subset_patch.hpp"

namespace dic::refine {

/// Weighted sums over a reference subset. i, j: px from its centre; f: grey values relative to `mean`;
/// monomials are in the order of icgn::monomial_index.
struct ReferenceSubsetSums {
  double count = 0, mean = 0;     ///< sum of the weights; mean grey value, or the given one
  double grey = 0;                ///< sum f: 0 except for rounding, if relative to the subset's mean
  double grey_grey = 0;           ///< sum f^2
  double dx[6] = {}, dy[6] = {};  ///< sum dx i^a j^b, a + b <= order
  double grey_dx[6] = {}, grey_dy[6] = {};
  double dx_dx[15] = {}, dx_dy[15] = {}, dy_dy[15] = {};  ///< sum dx dx i^a j^b, ..., a + b <= 2 order
};

/// First and last column of a subset and the column of its centre, in the patch of ColumnSums.
struct SubsetColumns {
  int left, right, centre;
};

/// Sums down the columns of a patch. They give the sums over all subsets in its rows: subsets of neighbouring
/// points have most columns in common. Vectorized over columns with run-time dispatch.
class ColumnSums {
 public:
  /// Sums the columns of a patch, which may be as wide as its image. order: order of the shape function.
  void sum(const ReferencePatch& patch, int order);

  /// Sums over a subset with all rows of the patch, relative to the subset's mean.
  ReferenceSubsetSums over(const SubsetColumns& columns) const;
  /// Sums over a subset with all rows of the patch, relative to the grey value `mean`.
  ReferenceSubsetSums over(const SubsetColumns& columns, float mean) const;

 private:
  void add_up(const SubsetColumns& columns, const float* mean, ReferenceSubsetSums& out) const;

  int order_ = 0, first_ = 0;  ///< first_: first column of the patch
  std::size_t stride_ = 0;     ///< floats from one kind of sum to the next
  std::vector<float> sums_;
};

/// Sums over one subset that shares no columns with others, relative to its mean.
ReferenceSubsetSums reference_sums(const ReferencePatch& patch, int order);
/// Sums over one subset that shares no columns with others, relative to the grey value `mean`.
ReferenceSubsetSums reference_sums_about(float mean, const ReferencePatch& patch, int order);

}  // namespace dic::refine
