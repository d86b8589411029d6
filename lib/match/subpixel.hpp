#pragma once

#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <stop_token>

#include "core/parallel.hpp"
#include "match/candidates.hpp"
#include "match/pattern.hpp"

namespace dic::match {

/// The position of a pattern and how well it fits there.
struct SubpixelFit {
  double x = 0, y = 0;  ///< position of the pattern's first element, image px
  double score = 0;     ///< score by the method of the search, see Matcher
};

/// Refines the position of a candidate to a fraction of a pixel. Throws Cancelled.
SubpixelFit fit_subpixel(const Pattern& pattern, ImageView image, const Candidate& candidate,
                         Criterion method, core::ThreadPool& pool, const std::stop_token& stop);

}  // namespace dic::match
