#pragma once

#include <dic/fields.hpp>
#include <dic/track.hpp>

namespace dic {

/// Mean, standard deviation and mean sigma of one component over the nodes that have it.
FrameSummary::Strain summarize_strain(const NodeValues<float>& strain, const NodeValues<float>& sigma);

}  // namespace dic
