#pragma once

#include <dic/fields.hpp>

namespace dic::fields {

/// Scatter of the displacements between neighbouring points over that predicted by their sigmas.
struct ScatterRatios {
  double u = 1, v = 1;
};

/// Observed over predicted scatter where it surely exceeds 1 along both axes, otherwise 1. It is that of
/// fourth differences along rows and columns, in which smooth fields vanish; those of noise follow from sigma
/// and the pixels that subsets share. Medians over up to some thousand places, so that a part of the field
/// that is torn or not smooth does not count.
ScatterRatios excess_scatter(const Field& field, const MeasuredSubsets& subsets);

}  // namespace dic::fields
