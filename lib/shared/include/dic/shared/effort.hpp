#pragma once

#include <cstdint>

namespace dic::track {

/// Effort: how much is done to find a point.
enum class Effort : std::uint8_t {
  none,        ///< the point is lost
  support,     ///< its whole subset may be found beside others, which then support each other
  neighbours,  ///< it may be found beside others; its loss causes no search of whole images
  search       ///< everything
};

}  // namespace dic::track
