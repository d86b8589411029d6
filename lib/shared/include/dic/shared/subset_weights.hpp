#pragma once

#include <cstdint>

namespace dic {

/// How much a pixel of a subset counts, by its position in it.
enum class SubsetWeights : std::uint8_t {
  uniform,   ///< all the same
  gaussian,  ///< 1 at the centre; standard deviation of a quarter of the subset along both axes
};

}  // namespace dic
