#pragma once

#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <vector>

#include "core/parallel.hpp"
#include "match/pattern.hpp"

namespace dic::match {

/// True for a pattern whose contrast is so small against its grey levels that a float cannot tell its NCC at
/// the right place from that elsewhere: on a pedestal of 60000 +- 4 grey levels all are above 0.99999999.
bool is_faint(const Pattern& pattern);

/// The surface of NCC - 1 of a pattern over all positions that lie completely inside the image, row by row,
/// where floats have their full resolution: from deviations from the mean of pattern and window instead of
/// grey levels. -1 where the image is zero.
std::vector<float> ncc_below_one(const Pattern& pattern, ImageView image, Correlator& correlator,
                                 core::ThreadPool& pool);

}  // namespace dic::match
