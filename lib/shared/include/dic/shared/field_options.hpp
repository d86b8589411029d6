#pragma once

#include <cstdint>
#include <dic/shared/enum_names.hpp>
#include <dic/shared/export.hpp>
#include <dic/shared/subset_weights.hpp>
#include <string>
#include <vector>

namespace dic {

enum class StrainMeasure : std::uint8_t { green_lagrange, engineering, hencky, almansi };
template <>
struct EnumNames<StrainMeasure> {
  static constexpr EnumName<StrainMeasure> table[] = {{StrainMeasure::green_lagrange, "green-lagrange"},
                                                      {StrainMeasure::engineering, "engineering"},
                                                      {StrainMeasure::hencky, "hencky"},
                                                      {StrainMeasure::almansi, "almansi"}};
};

struct StrainOptions {
  /// Side of the square window of points for the least-squares fit, odd, 3..127. 5 points at step 5 and
  /// subset 33 is a virtual strain gauge of 53 px ((window - 1) * step + subset).
  int window = 5;
  StrainMeasure measure = StrainMeasure::green_lagrange;
  /// One sentence per problem; empty when all is well.
  DIC_API std::vector<std::string> validate() const;
};

/// The subsets that a field was measured with.
struct MeasuredSubsets {
  int size = 33;  ///< px, odd
  int order = 1;  ///< order of the shape function
  SubsetWeights weights = SubsetWeights::uniform;
};

struct OutlierOptions {
  bool enabled = true;
  /// Normalized residual (of u and v together) above which a point contradicts its neighbours. Without
  /// `floor`, noise-free data would be flagged.
  double threshold = 6.0;
  double floor = 0.1;  ///< px, added to the median residual (Westerweel & Scarano 2005)
};

}  // namespace dic
