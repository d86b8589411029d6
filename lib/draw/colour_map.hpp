#pragma once

#include <array>
#include <dic/draw.hpp>

namespace dic::draw {

using Colours = std::array<Colour, 256>;

/// The colours of a map that is not automatic. blue_red has even lightness on both sides.
const Colours& colours_of(ColourMap map);

}  // namespace dic::draw
