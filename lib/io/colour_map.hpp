#pragma once

#include <array>
#include <cstdint>

namespace dic {

/// 256 colours, R G B.
using ColourMap = std::array<std::array<std::uint8_t, 3>, 256>;

/// Perceptually uniform, dark blue to yellow (viridis).
const ColourMap& sequential_map();
/// Blue - light grey - red, of even lightness on both sides; for values around zero.
const ColourMap& diverging_map();

}  // namespace dic
