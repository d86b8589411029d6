#pragma once

#include <array>
#include <dic/field_schema.hpp>
#include <dic/fields.hpp>
#include <dic/track_files.hpp>
#include <nlohmann/json.hpp>
#include <string_view>

namespace dic::run {

/// Mean, standard deviation, mean sigma and extremes of each of kStrainComponents, over the nodes that have
/// them. positions: of the nodes in corrected coordinates, or null. length_factor: of the extremes'
/// positions, per px.
std::array<FrameSummary::Strain, kStrainComponents.size()> summarize_strain(const StrainField& strain,
                                                                            const Grid& grid,
                                                                            const NodePositions* positions,
                                                                            double length_factor);

/// Adds to a frame of run.json what it says about one component of the strain.
void describe_strain(nlohmann::ordered_json& frame, std::string_view component,
                     const FrameSummary::Strain& strain);

}  // namespace dic::run
