#pragma once

#include <array>
#include <dic/draw.hpp>

namespace dic::draw {

using Colours = std::array<Colour, 256>;

/// The colours of a map, which must not be automatic. blue_red has the same lightness on both sides.
const Colours& colours_of(ColourMap map);

}  // namespace dic::draw
