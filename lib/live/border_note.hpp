#pragma once

#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <string>

#include "live/live_line.hpp"

namespace dic::live {

/// Names, in a sentence, points and ends of extensometers whose subsets reach beyond the border of the image,
/// so that only a part of them is measured. Empty if there are none. grid: of the measured points. subset: side, px.
std::string border_note(const LineContext& context, const Grid& grid, int subset, Size image);

}  // namespace dic::live
