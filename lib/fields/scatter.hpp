#pragma once

#include <dic/fields.hpp>

namespace dic::fields {

/// Scatter of the displacements between neighbouring points over that predicted by their sigmas, at least 1.
struct ScatterRatios {
  double u = 1, v = 1;
};

/// Observed over predicted scatter, less what chance explains. It is that of fourth differences between
/// points a subset apart, and at most that between close ones along rows and along columns, in which fields
/// vanish that are smooth in one direction at least. Those of noise follow from sigma and the pixels that
/// subsets share. Medians over some thousand places, so that a part of the field that is torn does not count.
/// 1 where there are too few places.
ScatterRatios excess_scatter(const Field& field, const MeasuredSubsets& subsets);

}  // namespace dic::fields
