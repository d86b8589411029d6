#pragma once

#include <array>
#include <dic/fields.hpp>
#include <dic/track_files.hpp>
#include <nlohmann/json.hpp>

namespace dic::run {

/// Of exx, eyy and exy: mean, standard deviation, mean sigma and extremes over the nodes that have them.
/// positions: of the nodes in corrected coordinates, or null. length_factor: of the extremes' positions, per
/// px.
std::array<FrameSummary::Strain, 3> summarize_strain(const StrainField& strain, const Grid& grid,
                                                     const NodePositions* positions, double length_factor);

/// What run.json says of one component, "exx" for example, of a frame.
void describe_strain(nlohmann::ordered_json& frame, const std::string& component,
                     const FrameSummary::Strain& strain);

}  // namespace dic::run
