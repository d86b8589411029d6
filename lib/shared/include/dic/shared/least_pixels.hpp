#pragma once

#include <dic/shared/refine_options.hpp>

namespace dic::refine {

/// Smallest number of usable pixels of a whole subset: half of them, rounded down, so that points beside a
/// corner are measured. A quarter if one image was made as blurred as the other, because pixels along the
/// border then do not count although they show the same material.
inline int least_pixels(const RefineOptions& options) {
  return options.subset * options.subset / (options.matching != 0 ? 4 : 2);
}

}  // namespace dic::refine
