#pragma once

#include <dic/match.hpp>
#include <vector>

namespace dic::match {

/// Intersection over union of the boxes of two matches, [0, 1].
double box_overlap(const Match& a, const Match& b);

/// True if `match` overlaps one of `accepted` by more than `max_overlap`.
bool is_suppressed(const Match& match, const std::vector<Match>& accepted, double max_overlap);

/// Selects from matches in order of score at most `max_matches` that do not overlap a better one.
std::vector<Match> suppress_non_maxima(const std::vector<Match>& matches, double max_overlap,
                                       int max_matches);

}  // namespace dic::match
