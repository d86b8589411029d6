#pragma once

#include <dic/fields.hpp>
#include <dic/track.hpp>

namespace dic {

/// Mean, standard deviation, mean sigma and extremes of one component, exx for example, over the nodes that
/// have it. length_factor: of the extremes' positions, per px.
FrameSummary::Strain summarize_strain(const Field& field, NodeValues<float> StrainField::*component,
                                      NodeValues<float> StrainField::*sigma, double length_factor);

}  // namespace dic
