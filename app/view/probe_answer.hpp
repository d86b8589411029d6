#pragma once

#include <dic/result.hpp>

#include "view/json.hpp"

namespace dic::app {

/// What `dic probe` says of one probe of the page, by the functions of dic/probe.hpp. asked: kind ("point",
/// "extensometer", "line", "area") and points, [[x, y], ...] in px. Answer: frames, a list with the values of
/// each frame by their name: of a point its own, of an extensometer gauge_length, change, strain and their
/// sigma, of lines and areas the means of what there is; and problem, a few words, where there are none.
/// With a member frame (from 0): the points of a line in that frame alone, with their distance. Throws
/// UsageError.
Json probe_answer(const Result& result, const Json& asked);

}  // namespace dic::app
