#pragma once

#include <dic/result.hpp>

#include "view/json.hpp"

namespace dic::app {

/// Values of one probe of the page, computed as `dic probe` does by the functions of dic/probe.hpp. asked:
/// kind ("point", "extensometer", "line", "area") and points, [[x, y], ...] in px. Answer: frames, a list
/// with the values of each frame by their name: of a point its own, of an extensometer gauge_length, change,
/// strain and their sigma, of lines and areas the means of the measured points; and problem, a few words, if
/// there are no values. With a member frame (from 0): the points of a line in that frame alone, with their
/// distance. Throws UsageError.
Json probe_answer(const Result& result, const Json& asked);

}  // namespace dic::app
