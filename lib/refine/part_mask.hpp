#pragma once

#include <cstddef>
#include <dic/shared/subset_part.hpp>
#include <vector>

#include "refine/weight_table.hpp"

namespace dic::refine {

/// The pixels of a part of a subset that is not a rectangle.
class PartMask {
 public:
  explicit PartMask(const SubsetPart& part, int subset)
      : weights_(subset), rows_(static_cast<std::size_t>(subset)), radius_(subset / 2) {
    for (int j = part.top; j <= part.bottom; ++j) {
      const PartRow row = rows_[j + radius_] = part.row(j);
      for (int i = row.first; i <= row.last; ++i) weights_.at(i, j) = 1;
    }
  }

  WeightTable& weights() { return weights_; }
  /// The columns of the part in each row; the pointer is at the subset's centre.
  const PartRow* rows() const { return rows_.data() + radius_; }

 private:
  WeightTable weights_;
  std::vector<PartRow> rows_;
  std::ptrdiff_t radius_;
};

}  // namespace dic::refine
