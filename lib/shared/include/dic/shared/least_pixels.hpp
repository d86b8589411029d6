#pragma once

#include <dic/shared/refine_options.hpp>

namespace dic::refine {

/// Pixels that must be left of a whole subset: half of them, rounded down, so that a point beside a corner
/// has them. Where one image was made as blurred as the other, those along the border do not count, although
/// they show the same material: a quarter then.
inline int least_pixels(const RefineOptions& options) {
  return options.subset * options.subset / (options.matching != 0 ? 4 : 2);
}

}  // namespace dic::refine
