#pragma once

#include <array>
#include <dic/field_schema.hpp>
#include <dic/fields.hpp>
#include <dic/track_files.hpp>
#include <nlohmann/json.hpp>
#include <string_view>

namespace dic::run {

/// Mean, standard deviation, mean sigma and extremes of each of kStrainComponents, over the nodes that have
/// them. positions: nodes in corrected coordinates, or null. length_factor: length unit per px, for the
/// positions of extremes.
std::array<FrameSummary::Strain, kStrainComponents.size()> summarize_strain(const StrainField& strain,
                                                                            const Grid& grid,
                                                                            const NodePositions* positions,
                                                                            double length_factor);

/// Adds the summary of one component to a frame of run.json.
void describe_strain(nlohmann::ordered_json& frame, std::string_view component,
                     const FrameSummary::Strain& strain);

}  // namespace dic::run
